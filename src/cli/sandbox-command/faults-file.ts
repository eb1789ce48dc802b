// faults-file.ts: reads the file of `sandbox --faults` (YAML or JSON). Reports all problems with line and
// column.

import { readFileSync } from 'node:fs'
import { LineCounter, parseDocument, type Document } from 'yaml'
import { readFaults, type FaultsInput } from '../../sandbox/sandbox.ts'
import { GatewayError, unreadable } from '../../std/gateway-error.ts'
import { utf8Text } from '../../std/file-system/utf8-text.ts'
import { quote } from '../../std/quote.ts'

const stdinFd = 0

/** `-` is stdin. Throws GatewayError INPUT_UNREADABLE or CONFIG_INVALID with all problems. */
export function readFaultsFile(file: string): FaultsInput {
  const lines = new LineCounter()
  const document = parseDocument(textOf(file), { lineCounter: lines })
  const at = (offset: number) => {
    const { line, col } = lines.linePos(offset)
    return `${file}:${line}:${col}`
  }
  const problems = document.errors.map((error) => `${at(error.pos[0])}  ${error.message.split('\n', 1)[0]}`)
  const value: unknown = problems.length === 0 ? document.toJS({ maxAliasCount: 100 }) : null
  if (problems.length === 0) {
    const reading = readFaults(value)
    if (reading.kind === 'problems')
      for (const { path, message } of reading.problems)
        problems.push(`${at(offsetOf(document, path))}  ${path.join('.')}: ${message}`)
  }
  if (problems.length === 0) return value as FaultsInput
  throw new GatewayError('CONFIG_INVALID', {
    what: `The faults in ${file} are invalid.`,
    why: problems.join('\n'),
    act: 'Correct them and start again.',
  })
}

function textOf(file: string): string {
  try {
    return utf8Text(readFileSync(file === '-' ? stdinFd : file))
  } catch (error) {
    throw unreadable(
      `the faults from ${quote(file)}`,
      error,
      'Give a YAML or JSON file that this user may read.',
    )
  }
}

/** A missing key is reported at the node that lacks it. */
function offsetOf(document: Document, path: readonly (string | number)[]): number {
  for (let length = path.length; length >= 0; length -= 1) {
    const node = document.getIn(path.slice(0, length), true) as { range?: readonly number[] } | undefined
    if (node?.range?.[0] !== undefined) return node.range[0]
  }
  return 0
}
