import { MEMORY_PAGE_LIMITS, MEMORY_STORE_LIMITS } from '../../../core/memory-limits.ts';
import { ask } from '../../shared/api.ts';
import { count, counted } from '../../shared/format.ts';
import { API, ENTITY_TYPES, type EntityType, type Relation } from '../model.ts';

export interface GraphNode {
  readonly id: string;
  readonly name: string;
  readonly type: EntityType;
  /** Hops from the start; undefined for the whole graph. */
  readonly depth?: number;
}

/** The data of the drawing; relations refer to nodes by index. */
export interface GraphData {
  /** Index of the start; undefined for the whole graph. */
  readonly root: number | undefined;
  readonly nodes: readonly GraphNode[];
  readonly edges: readonly GraphEdge[];
  /** For each node, the indexes of the nodes that it has relations with. */
  readonly neighbours: readonly (readonly number[])[];
  /** What was left out, and why. */
  readonly notes: readonly string[];
  /** What there is of other types than those that were asked for: `23 doc_chunks`. */
  readonly others: readonly string[];
  /** Other entities with the same name as the start. */
  readonly namesakes: readonly GraphNode[];
}

export interface GraphEdge {
  readonly from: number;
  readonly to: number;
  readonly type: Relation['relationType'];
  readonly weight: number;
}

interface Walk {
  readonly root: GraphNode;
  readonly nodes: readonly GraphNode[];
  readonly edges: readonly Relation[];
  readonly truncated: boolean;
  readonly ambiguous?: readonly GraphNode[];
}

interface TopologyPage {
  readonly nodes: readonly GraphNode[];
  readonly edges: readonly Relation[];
  readonly truncated: boolean;
  readonly totals: {
    readonly entities: Readonly<Record<string, number>>;
    readonly relations: Readonly<Record<string, number>>;
  };
  readonly nextCursor: string | null;
}

/** Loads the entities connected to an entity (id or name). @throws ApiError */
export async function loadWalk(entityId: string, maxDepth: number, signal: AbortSignal): Promise<GraphData> {
  const query = new URLSearchParams({
    entityId,
    maxDepth: String(maxDepth),
    limit: String(MEMORY_STORE_LIMITS.graphNodes),
  });
  const { root, nodes, edges, truncated, ambiguous } = await ask<Walk>(`${API}/graph?${query}`, { signal });
  const notes: string[] = [];
  if (truncated)
    notes.push(
      `There is more than shown: at most ${count(MEMORY_STORE_LIMITS.graphNodes)} entities and ${count(MEMORY_STORE_LIMITS.graphEdges)} relations are loaded. Choose a smaller depth, or start elsewhere.`,
    );
  return graphOf(nodes, edges, notes, { id: root.id, namesakes: ambiguous ?? [] });
}

/** Loads the graph of all entities of these types, up to the limit of a drawing. @throws ApiError */
export async function loadTopology(
  types: readonly EntityType[],
  signal: AbortSignal,
  progress: (nodes: number) => void,
): Promise<GraphData> {
  const nodes: GraphNode[] = [];
  const edges: Relation[] = [];
  let page: TopologyPage;
  let cursor: string | null = null;
  let isCut = false;
  do {
    const query = new URLSearchParams({
      limit: String(MEMORY_STORE_LIMITS.graphNodes),
      types: types.join(','),
    });
    if (cursor !== null) query.set('cursor', cursor);
    page = await ask<TopologyPage>(`${API}/graph?${query}`, { signal });
    nodes.push(...page.nodes);
    edges.push(...page.edges);
    isCut ||= page.truncated;
    cursor = page.nextCursor;
    progress(nodes.length);
  } while (
    cursor !== null &&
    nodes.length < MEMORY_PAGE_LIMITS.graphNodes &&
    edges.length < MEMORY_PAGE_LIMITS.graphEdges
  );
  const { entities } = page.totals;
  const total = types.reduce((sum, type) => sum + (entities[type] ?? 0), 0);
  const notes: string[] = [];
  if (cursor !== null)
    notes.push(
      `${count(nodes.length)} of ${count(total)} entities are shown: a drawing contains at most ${count(MEMORY_PAGE_LIMITS.graphNodes)} entities and ${count(MEMORY_PAGE_LIMITS.graphEdges)} relations. Start from one entity to see its surroundings.`,
    );
  if (isCut)
    notes.push(
      `Some relations are left out: each part of the graph contains at most ${count(MEMORY_STORE_LIMITS.graphEdges)}.`,
    );
  const hidden = ENTITY_TYPES.filter((type) => !types.includes(type) && (entities[type] ?? 0) > 0);
  const others = hidden.map((type) => counted(entities[type] ?? 0, type));
  return { ...graphOf(nodes, edges, notes), others };
}

function graphOf(
  nodes: readonly GraphNode[],
  relations: readonly Relation[],
  notes: readonly string[],
  root?: { readonly id: string; readonly namesakes: readonly GraphNode[] },
): GraphData {
  const places = new Map(nodes.map(({ id }, place) => [id, place]));
  const neighbours: number[][] = nodes.map(() => []);
  const edges: GraphEdge[] = [];
  for (const { fromId, toId, relationType, weight } of relations) {
    const from = places.get(fromId);
    const to = places.get(toId);
    if (from === undefined || to === undefined) continue;
    edges.push({ from, to, type: relationType, weight });
    if (from === to) continue;
    neighbours[from]?.push(to);
    neighbours[to]?.push(from);
  }
  return {
    root: root === undefined ? undefined : places.get(root.id),
    nodes,
    edges,
    neighbours,
    notes,
    others: [],
    namesakes: root?.namesakes ?? [],
  };
}
