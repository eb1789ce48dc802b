// function-row.ts: what a row of the table of functions has.

/** Undefined where an argument has a type that the function does not take; null for no value. */
type Apply = (...values: unknown[]) => unknown

export type FunctionRow = {
  readonly name: string
  /** As documentation writes them: `text, from, count?`. */
  readonly parameters: string
  /** One sentence. */
  readonly doc: string
  readonly example: string
  readonly apply: Apply
  /** The steps of a call with these arguments, besides one; 0 for any that the function does not take. */
  readonly cost?: ((...values: unknown[]) => number) | undefined
  /** Checks arguments that are constants, and makes an `apply` of them. Throws Malformed. */
  readonly prepare?: ((constants: readonly unknown[]) => Apply) | undefined
}

/** `call`: as documentation writes it, such as `bits(text, from, count?)`. */
export function row(
  call: string,
  doc: string,
  example: string,
  apply: Apply,
  more?: Pick<FunctionRow, 'cost' | 'prepare'>,
): FunctionRow {
  const [name = '', parameters = ''] = call.slice(0, -1).split('(')
  return { name, parameters, doc, example, apply, ...more }
}

/** How many arguments a function takes; `...` at the end stands for any number. */
export function arityOf({ parameters }: FunctionRow): { least: number; most: number } {
  const names = parameters.split(', ')
  const isOpen = names.at(-1) === '...'
  const least = names.filter((name) => !name.endsWith('?') && name !== '...').length
  return { least, most: isOpen ? 32 : names.length }
}
