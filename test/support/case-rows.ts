// case-rows.ts: the rows of a table of tests that are data, from the file NAME.cases.yaml beside NAME.test.ts.

import { readFileSync } from 'node:fs'
import { parse } from 'yaml'

export function rowsBeside(testFile: string): unknown {
  return parse(readFileSync(testFile.replace(/\.test\.ts$/, '.cases.yaml'), 'utf8'), { merge: true })
}
