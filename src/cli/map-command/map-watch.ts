// map-watch.ts: `map --watch`: maps the same messages again each time a file that was read changes: the
// config, presets, the device table, cases.
//
//   run -> wait for a change -> a line with the time and the files -> run -> ...
//
// A run that is refused prints its problems, with line and column, and the next change is waited for. It ends
// by a stop (Ctrl-C), with the exit status of the last run. Messages are read once, before the first run that
// uses them, and at most `samplesBytesMax` of them. What cannot change by an edit, such as options that
// contradict each other or unreadable messages, ends the command.

import { relative, resolve } from 'node:path'
import { systemClock } from '../../std/clock.ts'
import { readUtf8 } from '../../std/file-system/utf8-text.ts'
import { createFileWatch } from '../../std/file-watch/file-watch.ts'
import { GatewayError } from '../../std/gateway-error.ts'
import type { Message } from '../../domain/message.ts'
import { reportError } from '../terminal/error-report.ts'
import {
  clearScreen,
  printNote,
  terminalWidth,
  write,
  type CommandIo,
  type ExitStatus,
} from '../terminal/terminal.ts'
import type { ReadText } from './preset-mapping.ts'

/** How files are read for a mapping. */
export type ReadFiles = {
  readText: ReadText
  /** To be called before a file is read in another way. */
  willRead(path: string): Promise<void>
}

export const plainFiles: ReadFiles = {
  readText: readUtf8,
  willRead: () => Promise.resolve(),
}

/** Calls `take` with each message, until it returns false. */
export type TakeAll = (
  topic: string | undefined,
  take: (message: Message) => Promise<boolean>,
) => Promise<void>

type Run = (readFiles: ReadFiles, takeAll: TakeAll) => Promise<ExitStatus>

/** An editor writes in several steps. */
const settleMs = 150
/** Where the system reports no events. */
const pollMs = 2000
const samplesBytesMax = 16 * 1024 * 1024
const shownMax = 5

/** Problems that no edit of a file solves. */
const lasting: ReadonlySet<string> = new Set(['USAGE', 'INPUT_UNREADABLE'])

export async function watchMapping(
  io: CommandIo,
  { json = false }: { json?: boolean },
  takeAll: TakeAll,
  run: Run,
): Promise<ExitStatus> {
  const changed = new Set<string>()
  const read = new Set<string>()
  let wake = () => {}
  const watch = createFileWatch(
    {
      clock: systemClock,
      changed(files) {
        for (const file of files) changed.add(file)
        wake()
      },
    },
    { settleMs, pollMs },
  )
  const readFiles: ReadFiles = {
    async readText(path) {
      await willRead(path)
      return readUtf8(path)
    },
    willRead,
  }
  const takeSamples = keptSamples(io, takeAll)
  // The timers of the clock do not keep the process alive.
  const alive = setInterval(() => undefined, 2 ** 30)
  io.endWithReader()
  let status: ExitStatus = 0
  try {
    for (;;) {
      status = await runOnce()
      if (!io.stop.aborted) printNote(io, `Waiting for a change of ${namesOf(read)}. Ctrl-C ends.`)
      await nextChange()
      if (io.stop.aborted) return status
      await write(io, headOf([...changed], io, json))
      changed.clear()
    }
  } finally {
    clearInterval(alive)
    watch.close()
  }

  async function runOnce(): Promise<ExitStatus> {
    try {
      return await run(readFiles, takeSamples)
    } catch (error) {
      if (io.stop.aborted) return status
      if (!(error instanceof GatewayError) || lasting.has(error.code)) throw error
      return reportError(error, io.stderr, { json, env: io.env })
    }
  }

  /** A change after this is seen, so the file is watched before it is read. */
  async function willRead(path: string): Promise<void> {
    const file = resolve(path)
    read.add(file)
    await watch.watch([file])
  }

  async function nextChange(): Promise<void> {
    if (changed.size > 0 || io.stop.aborted) return
    await new Promise<void>((done) => {
      wake = done
      io.stop.addEventListener('abort', () => done(), { once: true })
    })
  }
}

/** Reads the messages at the first call, and has the same ones afterwards. */
function keptSamples({ stop }: CommandIo, takeAll: TakeAll): TakeAll {
  let samples: Message[] | null = null
  return async (topic, take) => {
    samples ??= await readSamples(topic, takeAll)
    for (const message of samples) if (stop.aborted || !(await take(message))) return
  }
}

async function readSamples(topic: string | undefined, takeAll: TakeAll): Promise<Message[]> {
  const samples: Message[] = []
  let bytes = 0
  await takeAll(topic, (message) => {
    bytes += message.bytes.length + message.topic.length
    if (bytes > samplesBytesMax) throw tooMany()
    samples.push(message)
    return Promise.resolve(true)
  })
  return samples
}

/** What separates two runs. Only a terminal is cleared. */
function headOf(files: readonly string[], { stdout, env }: CommandIo, json: boolean): string {
  const at = new Date(systemClock.now()).toISOString()
  if (json) return `${JSON.stringify({ at, changed: files })}\n`
  const isDrawn = Number.isFinite(terminalWidth(stdout)) && env['TERM'] !== 'dumb'
  return `${isDrawn ? clearScreen : '\n'}--- ${at.slice(11, 19)} UTC: ${namesOf(files)} changed\n`
}

function namesOf(files: Iterable<string>): string {
  const names = [...files].map((file) => relative(process.cwd(), file) || file)
  const more = names.length - shownMax
  const shown = names.slice(0, shownMax).join(', ')
  return more > 0 ? `${shown} and ${more} more` : shown
}

function tooMany(): GatewayError {
  return new GatewayError('INPUT_UNREADABLE', {
    what: `The messages have more than ${samplesBytesMax / 1024 / 1024} MiB.`,
    why: 'With --watch they are kept in memory, to be mapped again.',
    act: 'Give fewer messages, for example with --count.',
  })
}
