// terminal-screen.ts: a stream that claims to be a terminal, and what a person sees on it.

import type { Writable } from 'node:stream'
import { keptOutput } from './ops-world.ts'

export type TerminalOutput = {
  stream: Writable & { columns: number; rows: number }
  /** All that was written, with escape codes. */
  text(): string
  /** The rows that a terminal without an end shows. Fails for a code that it does not know. */
  screen(): string[]
}

export function terminalOutput(columns = 80, rows = 24): TerminalOutput {
  const { stream, text } = keptOutput()
  return {
    stream: Object.assign(stream, { isTTY: true, columns, rows }),
    text,
    screen: () => screenOf(text()),
  }
}

const escape = '\u001b'

/** Line feed, carriage return, cursor up (A) and clear to the end of the screen (J). */
function screenOf(text: string): string[] {
  const lines: string[] = ['']
  let row = 0
  const codes = new RegExp(`${escape}\\[(?:(\\d+)A|J)|\\r|\\n|([^${escape}\\r\\n]+|${escape})`, 'g')
  for (const [code, up, other] of text.matchAll(codes)) {
    if (up !== undefined) row = Math.max(0, row - Number(up))
    else if (code === `${escape}[J`) lines.splice(row, lines.length, '')
    else if (code === '\n') row += 1
    else if (other === escape) throw new Error('an unknown escape code')
    else if (other !== undefined) lines[row] = (lines[row] ?? '') + other
    lines[row] ??= ''
  }
  return lines
}
