// config-problem.ts: a problem that a section found in the config. src/config adds file, line and column.

export type ConfigProblem = {
  /** Keys and list positions from the root of the config. */
  path: (string | number)[]
  /** What is wrong, to be read behind the path: `must be 1 to 64, found 0`. */
  message: string
}
