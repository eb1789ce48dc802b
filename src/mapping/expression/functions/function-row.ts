// function-row.ts: what a row of the table of functions has.

export type FunctionRow = {
  readonly name: string
  /** As documentation writes them: `text, from, count?`. */
  readonly parameters: string
  /** One sentence. */
  readonly doc: string
  readonly example: string
  /** Undefined where an argument has a type that the function does not take; null for no value. */
  apply(...values: unknown[]): unknown
  /** Checks arguments that are constants, and may make an `apply` of them. Throws Malformed. */
  prepare?(constants: readonly unknown[]): FunctionRow['apply']
}

/** How many arguments a function takes; `...` at the end stands for any number. */
export function arityOf({ parameters }: FunctionRow): { least: number; most: number } {
  const names = parameters.split(', ')
  const isOpen = names.at(-1) === '...'
  const least = names.filter((name) => !name.endsWith('?') && name !== '...').length
  return { least, most: isOpen ? 32 : names.length }
}
