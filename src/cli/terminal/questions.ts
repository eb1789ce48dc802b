// questions.ts: asks a person one line at a time, at any terminal: a serial console that knows no escape
// codes as well. The terminal itself shows and edits the line; nothing here moves the cursor.
//
// Ctrl-C, Ctrl-D and the end of the input end the questions with USAGE. A wrong answer is asked again.

import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { GatewayError } from '../../std/gateway-error.ts'
import type { CommandIo } from './terminal.ts'

/** `parse` gives the value, or a sentence that says what is allowed. */
export type Parsed<Value> = { value: Value } | { problem: string }

export type Question<Value> = {
  text: string
  /** The answer to an empty line; without it an empty line is parsed, too. */
  fallback?: string
  parse: (line: string) => Parsed<Value>
  /** The terminal does not show what is typed. */
  hidden?: boolean
}

export type Questions = {
  ask<Value>(question: Question<Value>): Promise<Value>
  close(): void
}

type Terminal = Readable & { isTTY?: boolean; setRawMode?: (raw: boolean) => void }

export function openQuestions(io: CommandIo): Questions {
  const { stdout, stop } = io
  const stdin = io.stdin as Terminal
  const reader = createInterface({ input: stdin, terminal: false })
  // What is typed ahead waits here.
  const lines: string[] = []
  let ended = stop.aborted
  let wake = (): void => undefined
  const end = () => {
    ended = true
    wake()
  }
  reader.on('line', (line) => {
    lines.push(line)
    wake()
  })
  reader.on('close', end)
  stop.addEventListener('abort', end)
  return { ask, close }

  async function ask<Value>({ text, fallback, parse, hidden = false }: Question<Value>): Promise<Value> {
    for (;;) {
      stdout.write(fallback === undefined || fallback === '' ? `${text}: ` : `${text} [${fallback}]: `)
      const line = (hidden ? await withoutEcho() : await nextLine()).trim()
      const parsed = parse(line === '' && fallback !== undefined ? fallback : line)
      if ('value' in parsed) return parsed.value
      stdout.write(`  ${parsed.problem}\n`)
    }
  }

  async function nextLine(): Promise<string> {
    while (lines.length === 0) {
      if (ended) throw interrupted()
      await new Promise<void>((resolve) => (wake = resolve))
    }
    return lines.shift() ?? ''
  }

  async function withoutEcho(): Promise<string> {
    const onData = (chunk: Buffer | string) => {
      // Raw mode makes no signal of Ctrl-C, and no end of Ctrl-D.
      if (['\u0003', '\u0004'].some((key) => String(chunk).includes(key))) end()
    }
    stdin.setRawMode?.(true)
    stdin.on('data', onData)
    try {
      return withoutErased(await nextLine())
    } finally {
      stdin.off('data', onData)
      stdin.setRawMode?.(false)
      stdout.write('\n')
    }
  }

  function close(): void {
    stop.removeEventListener('abort', end)
    reader.close()
  }
}

/** Raw mode leaves Backspace in the line. */
function withoutErased(line: string): string {
  const kept: string[] = []
  for (const key of line) {
    if (key === '\u007f' || key === '\b') kept.pop()
    else kept.push(key)
  }
  return kept.join('')
}

export function interrupted(): GatewayError {
  return new GatewayError('USAGE', {
    what: 'The command did not come to its end.',
    why: 'The input ended, or the command was interrupted.',
    act: 'Run the command again. Nothing was written.',
  })
}
