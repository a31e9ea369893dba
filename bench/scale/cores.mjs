/** Gateway, generator and upstream share these: more processes than cores is what a gateway with workers is for. */
export const CORES = '0,1';
export const CORE_COUNT = 2;
