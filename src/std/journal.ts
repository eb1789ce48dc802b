// journal.ts: priorities of lines for journald (sd-daemon(3)). A line on a stream that is the journal may
// begin with `<3>`; journald removes it and stores it as the priority, so that `journalctl -p warning`
// selects.
//
// systemd sets JOURNAL_STREAM to device and inode of the stream. Children inherit the variable, also those
// whose output goes elsewhere, so each stream is compared with it.

import { fstatSync } from 'node:fs'

const priorities = { fatal: 2, error: 3, warn: 4, info: 6, debug: 7, trace: 7 } as const

export type LineLevel = keyof typeof priorities
export type MarkLines = (level: LineLevel, text: string) => string

/** Puts the priority in front of each line of a text. Null where the stream is not the journal. */
export function journalMarks(stream: object, env: NodeJS.ProcessEnv): MarkLines | null {
  const journal = env['JOURNAL_STREAM']
  if (!journal || !('fd' in stream) || typeof stream.fd !== 'number') return null
  try {
    const { dev, ino } = fstatSync(stream.fd, { bigint: true })
    return journal === `${dev}:${ino}` ? marked : null
  } catch {
    // A stream that is closed is not the journal.
    return null
  }
}

function marked(level: LineLevel, text: string): string {
  const lines = text.split('\n')
  return lines.map((line) => (line === '' ? line : `<${priorities[level]}>${line}`)).join('\n')
}

/** Writes the lines of an error. */
export function writeError(stream: NodeJS.WritableStream, env: NodeJS.ProcessEnv, text: string): void {
  stream.write(journalMarks(stream, env)?.('error', text) ?? text)
}
