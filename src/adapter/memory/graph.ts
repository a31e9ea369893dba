import { MEMORY_STORE_LIMITS } from '../../core/memory-limits.ts';
import { citedBy, type ServedDocs } from './cited.ts';
import { type DocsPlaces, docsPlaces } from './docs-folders.ts';
import { placeOf } from './place.ts';
import type { Entity, EntityType, Relation, Store } from './store.ts';

export type Direction = 'out' | 'in' | 'both';

/**
 * A graph query. Depth and limit are capped at `MEMORY_STORE_LIMITS.graphDepth` and `MEMORY_STORE_LIMITS.graphNodes`.
 */
export interface GraphRequest {
  /** An id, an exact name, or what `citedBy` knows: path, source or address of a document, with line and anchor. */
  readonly entityId: string;
  readonly maxDepth: number;
  readonly direction?: Direction | undefined;
  /** Maximum number of nodes including the root. Default: `MEMORY_STORE_LIMITS.graphNodesDefault`. */
  readonly limit?: number | undefined;
}

export interface GraphNode {
  readonly id: string;
  readonly name: string;
  readonly type: Entity['type'];
  /** Hops from the root. */
  readonly depth: number;
  /** The beginning of its text. */
  readonly snippet?: string;
  /** Where a document, passage or folder is: `guide/setup.md:12#install`. */
  readonly place?: string;
}

type NamedNode = Pick<GraphNode, 'id' | 'name' | 'type' | 'place'>;

export interface GraphResponse {
  readonly root: NamedNode;
  /** The root first, then sorted by depth. */
  readonly nodes: readonly GraphNode[];
  /** Edges between these nodes only. */
  readonly edges: readonly Relation[];
  readonly maxDepth: number;
  /** Whether the limits cut the result. */
  readonly truncated: boolean;
  /** Other entities with the same name, which can be queried by id. */
  readonly ambiguous?: readonly NamedNode[];
}

/** No entity has the id or name; contains similar names. */
export interface GraphMissing {
  readonly root: undefined;
  readonly similarNames: readonly string[];
}

const SNIPPET = 160;
const SIMILAR_NAMES = 5;
/** Maximum number of entities with the same name that are reported. */
const SAME_NAME = 20;

/**
 * An entity of agents takes precedence, then a workspace over a file, chunk and message of the same name, because the
 * wider one is usually meant.
 */
const ORDER: ReadonlyMap<string, number> = new Map(
  (['entity', 'workspace', 'doc_file', 'doc_chunk', 'chat_message'] satisfies EntityType[]).map(
    (type, index) => [type, index],
  ),
);

interface Walk {
  readonly nodes: Map<string, GraphNode>;
  readonly edges: Map<string, Relation>;
  isTruncated: boolean;
  readonly located: DocsPlaces;
}

/**
 * Traverses the graph from an entity, level by level, visiting each entity once. Depth, nodes and edges are bounded: a
 * larger traversal stops and sets `truncated`.
 */
export async function walkGraph(
  store: Store,
  request: GraphRequest,
  served: ServedDocs = {},
): Promise<GraphResponse | GraphMissing> {
  const found = await candidatesFor(store, request.entityId, served);
  const [root, ...others] = found;
  if (root === undefined)
    return { root: undefined, similarNames: await store.similarNames(request.entityId, SIMILAR_NAMES) };
  const maxDepth = clamp(request.maxDepth, 0, MEMORY_STORE_LIMITS.graphDepth);
  const limit = clamp(
    request.limit ?? MEMORY_STORE_LIMITS.graphNodesDefault,
    1,
    MEMORY_STORE_LIMITS.graphNodes,
  );
  const located = await docsPlaces(store, served.docsFolder);
  const walk: Walk = {
    nodes: new Map([[root.id, nodeOf(root, 0, located)]]),
    edges: new Map(),
    isTruncated: false,
    located,
  };
  let level: readonly string[] = [root.id];
  for (let depth = 1; depth <= maxDepth && level.length > 0; depth += 1)
    level = await nextLevel(store, walk, level, { depth, limit, direction: request.direction ?? 'both' });
  return {
    root: named(root, located),
    nodes: [...walk.nodes.values()],
    edges: [...walk.edges.values()],
    maxDepth,
    truncated: walk.isTruncated,
    ...(others.length === 0 ? {} : { ambiguous: others.map((one) => named(one, located)) }),
  };
}

async function candidatesFor(store: Store, idOrName: string, served: ServedDocs): Promise<readonly Entity[]> {
  const byId = await store.entities([idOrName]);
  if (byId.length > 0) return byId;
  const byName = await store.byName(idOrName, SAME_NAME);
  if (byName.length > 0)
    return [...byName].sort(
      (left, right) =>
        (ORDER.get(left.type) ?? ORDER.size) - (ORDER.get(right.type) ?? ORDER.size) ||
        (left.id < right.id ? -1 : 1),
    );
  return citedBy(store, idOrName, served);
}

async function nextLevel(
  store: Store,
  walk: Walk,
  level: readonly string[],
  {
    depth,
    limit,
    direction,
  }: { readonly depth: number; readonly limit: number; readonly direction: Direction },
): Promise<readonly string[]> {
  // One more than fits, to detect truncation; edges that are already in the result may occur again.
  const edges = await store.edges(level, direction, MEMORY_STORE_LIMITS.graphEdges + 1);
  if (edges.length > MEMORY_STORE_LIMITS.graphEdges) walk.isTruncated = true;
  const fresh = new Set<string>();
  for (const { fromId, toId } of edges)
    for (const id of [fromId, toId]) if (!walk.nodes.has(id)) fresh.add(id);
  const room = limit - walk.nodes.size;
  const taken = [...fresh].slice(0, room);
  if (fresh.size > room) walk.isTruncated = true;
  const added = await store.entities(taken);
  for (const entity of added) walk.nodes.set(entity.id, nodeOf(entity, depth, walk.located));
  for (const edge of edges) {
    if (!walk.nodes.has(edge.fromId) || !walk.nodes.has(edge.toId)) continue;
    const key = JSON.stringify([edge.fromId, edge.toId, edge.relationType]);
    if (walk.edges.has(key)) continue;
    if (walk.edges.size >= MEMORY_STORE_LIMITS.graphEdges) walk.isTruncated = true;
    else walk.edges.set(key, edge);
  }
  return added.map(({ id }) => id);
}

function clamp(value: number, least: number, most: number): number {
  return Math.min(most, Math.max(least, Math.trunc(value)));
}

function named({ id, name, type, metadata }: Entity, located: DocsPlaces): NamedNode {
  const place = placeOf(located(metadata));
  return { id, name, type, ...(place !== undefined && { place }) };
}

function nodeOf(entity: Entity, depth: number, located: DocsPlaces): GraphNode {
  const text = entity.content
    .slice(0, 4 * SNIPPET)
    .replace(/\s+/g, ' ')
    .trim();
  const snippet = text.length > SNIPPET ? `${text.slice(0, SNIPPET - 1).toWellFormed()}…` : text;
  return { ...named(entity, located), depth, ...(snippet === '' ? {} : { snippet }) };
}
