// case-rows.ts: the rows of a table of tests that are data, from the file NAME.cases.yaml beside NAME.test.ts or NAME.ts.

import { readFileSync } from 'node:fs'
import { parse } from 'yaml'

/** In a text `<300 letters>` alone stands for as many. */
export function rowsBeside(testFile: string): unknown {
  const rows = readFileSync(testFile.replace(/(?:\.test)?\.ts$/, '.cases.yaml'), 'utf8')
  return parse(rows, (_key, value: unknown) => (typeof value === 'string' ? withLetters(value) : value), {
    merge: true,
  })
}

function withLetters(text: string): string {
  const [, count] = /^<(\d+) letters>$/.exec(text) ?? []
  return count === undefined ? text : 'x'.repeat(Number(count))
}
