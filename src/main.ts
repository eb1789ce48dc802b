#!/usr/bin/env node
// main.ts: the process: arguments, signals, exit status. The only place that ends it.
//
// The first SIGINT or SIGTERM stops the command in order. A second one ends the process at once. That is
// safe: what was acknowledged is on disk, and devices send everything else again.

import { writeSync } from 'node:fs'
import { inspect } from 'node:util'
import { runCommandLine } from './cli/cli.ts'
import { relaunchForMemory } from './cli/relaunch.ts'

relaunchForMemory(process.argv.slice(2))

// What a command writes has positions of vehicles or secrets: only its user may read it.
process.umask(0o077)

const signalNumbers = { SIGINT: 2, SIGTERM: 15 } as const

const stop = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    if (stop.signal.aborted) process.exit(128 + signalNumbers[signal])
    stop.abort(signal)
  })
}

// Every write to a pipe without a reader fails. A daemon must survive the loss of its log reader.
process.stdout.on('error', () => undefined)
process.stderr.on('error', () => undefined)

// Unhandled rejections arrive here too. The state of the process is unknown. The spool survives an end at any
// moment, so ending is the safest reaction.
process.on('uncaughtException', (error) => {
  try {
    writeSync(
      2,
      `fatal: this is a fault of the gateway. It ends now. No acknowledged message is lost.\n${inspect(error)}\n`,
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
