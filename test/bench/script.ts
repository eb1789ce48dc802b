// script.ts: what the bench's processes have in common: numbers from the command line, one JSON line out, and an
// end when the one who started them is gone.

import { parseArgs } from 'node:util'

/** `--name 5` for each key of `defaults`; anything else on the command line is an error. */
export function numbersOf<Name extends string>(defaults: Record<Name, number>): Record<Name, number> {
  const names = Object.keys(defaults) as Name[]
  const { values } = parseArgs({
    options: Object.fromEntries(names.map((name) => [name, { type: 'string' as const }])),
  })
  const numbers = { ...defaults }
  for (const name of names) {
    const text = values[name]
    if (text === undefined) continue
    const value = Number(text)
    if (!Number.isFinite(value)) throw new Error(`--${name} must be a number, found ${text}`)
    numbers[name] = value
  }
  return numbers
}

export function writeLine(line: unknown): void {
  process.stdout.write(`${JSON.stringify(line)}\n`)
}

/** For servers: the bench holds our standard input open, and its end is ours, however it died. */
export function endWithParent(): void {
  process.stdin.resume()
  process.stdin.on('end', () => process.exit(0))
}
