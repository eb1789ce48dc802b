// config-problem.ts: something wrong with the config, as a section finds it; src/config adds file, line and column.

export type ConfigProblem = {
  /** Keys and list positions from the root of the config. */
  path: (string | number)[]
  /** What is wrong, to be read behind the path: `must be 1 to 64, found 0`. */
  message: string
}
