/**
 * The tables of kinds, by their names in the schema. The file of each kind adds its own: statements need the types of all tables,
 * and a list of kinds here would import those files in a circle.
 */
// biome-ignore lint/suspicious/noEmptyInterface: the files of kinds add to it
export interface KindTables {}
