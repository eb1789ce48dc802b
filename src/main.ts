#!/usr/bin/env node
// main.ts: the process: arguments, signals, exit status. The only place that ends it.
//
// The first SIGINT or SIGTERM asks the command to stop. A second one ends the process at once: that is safe by
// design, since what was acknowledged is on disk and everything else is sent again by who sent it.

import { writeSync } from 'node:fs'
import { inspect } from 'node:util'
import { runCommandLine } from './cli/cli.ts'
import { relaunchForMemory } from './cli/relaunch.ts'

relaunchForMemory(process.argv.slice(2))

const signalNumbers = { SIGINT: 2, SIGTERM: 15 } as const

const stop = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    if (stop.signal.aborted) process.exit(128 + signalNumbers[signal])
    stop.abort(signal)
  })
}

// Without its reader a pipe fails at every write. A daemon must outlive its log, so this is nobody's end.
process.stdout.on('error', () => undefined)
process.stderr.on('error', () => undefined)

// Also what a promise rejected with that nobody waited for. The state of the process is unknown now; the spool is
// made for being left at any moment, so leaving is the safest thing to do.
process.on('uncaughtException', (error) => {
  try {
    writeSync(
      2,
      `fatal: this is a fault of the gateway; it ends now and nothing acknowledged is lost.\n${inspect(error)}\n`,
    )
  } finally {
    process.exit(1)
  }
})

const { stdin, stdout, stderr, env } = process
const onHangUp = (listener: () => void) => void process.on('SIGHUP', listener)
const status = await runCommandLine(process.argv.slice(2), {
  stdin,
  stdout,
  stderr,
  env,
  stop: stop.signal,
  onHangUp,
})
// What a command wrote may still be on its way to a slow reader.
await Promise.all([stdout, stderr].map((stream) => new Promise((resolve) => stream.write('', resolve))))
process.exit(status)
