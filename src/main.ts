#!/usr/bin/env node
// main.ts: the process: arguments, signals, exit status. The only place that ends it, but for a stop of the
// daemon that passes its deadline.
//
// The first SIGINT or SIGTERM stops the command in order. A second one ends the process at once. That is
// safe: what was acknowledged is on disk, and devices send everything else again.

import { accessSync, constants, writeSync } from 'node:fs'
import { inspect } from 'node:util'
import { runCommandLine } from './cli/cli.ts'
import { relaunchWithSettings } from './cli/relaunch.ts'
import { reportError } from './cli/terminal/error-report.ts'
import { watchOutputReader } from './cli/terminal/output-reader.ts'
import { outputEnded, type ExitStatus } from './cli/terminal/terminal.ts'
import { setAddressAttempts } from './std/network-faults/address-attempts.ts'
import { codeOf, GatewayError, messageOf } from './std/gateway-error.ts'
import { journalMarks } from './std/journal.ts'

relaunchWithSettings(process.argv.slice(2))

setAddressAttempts()

// What a command writes has positions of vehicles or secrets: only its user may read it.
process.umask(0o077)

const argv = process.argv.slice(2)
const isJson = argv.includes('--json')
const isDaemon = argv.find((word) => !word.startsWith('-')) === 'run'

// The default ends the process. One that comes before the daemon can reload is done when it can.
let hungUp = (): void => void (isHungUp = true)
let isHungUp = false
if (isDaemon) process.on('SIGHUP', () => hungUp())

const signalNumbers = { SIGINT: 2, SIGTERM: 15 } as const

// A terminal sends Ctrl-C to every process of a command, and npm and pinned-node.js pass theirs on: one key
// press arrives up to three times.
const sameKeyPressMs = 300

const stop = new AbortController()
let firstSignalAt = 0
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    if (!stop.signal.aborted) {
      firstSignalAt = performance.now()
      stop.abort(signal)
    } else if (performance.now() - firstSignalAt > sameKeyPressMs) {
      endAtOnce(128 + signalNumbers[signal])
    }
  })
}

// Every write to a pipe without a reader fails, and each one to a full disk. A daemon must survive the loss
// of its log reader; another command has nothing more to do, and stops in order.
let outputError: Error | null = null
process.stdout.on('error', (error) => {
  if (isDaemon || outputError !== null) return
  outputError = error
  stop.abort(outputEnded)
})
process.stderr.on('error', () => undefined)

// Unhandled rejections arrive here too. The state of the process is unknown. The spool survives an end at any
// moment, so ending is the safest reaction.
process.on('uncaughtException', (error) => {
  const what = 'fatal: this is a fault of the gateway. It ends now. No acknowledged message is lost.'
  const why = inspect(error)
  const fault = { code: 'FAULT', what, why, act: 'Report it, with this text.' }
  try {
    const text = isJson ? `${JSON.stringify({ error: fault })}\n` : `${what}\n${why}\n`
    writeSync(2, journalMarks({ fd: 2 }, process.env)?.('fatal', text) ?? text)
  } finally {
    endAtOnce(1)
  }
})

const { stdin, stdout, stderr, env } = process
const status = await runCommandLine(argv, {
  stdin,
  stdout,
  stderr,
  env,
  stop: stop.signal,
  onHangUp(listener) {
    hungUp = listener
    if (isHungUp) listener()
  },
  endWithReader: () => watchOutputReader(() => stop.abort(outputEnded)),
})
// What a command wrote may still be on its way to a slow reader.
await Promise.all([stdout, stderr].map((stream) => new Promise((resolve) => stream.write('', resolve))))
// An error of the last write is reported one turn later.
await new Promise((resolve) => setImmediate(resolve))
endAtOnce(exitStatus())

/**
 * process.exit waits for threads that hang in the disk or in a look-up of a name. A new image of the process
 * ends all of them. An execve that fails would abort; this Node may be gone since an upgrade.
 */
function endAtOnce(status: number): void {
  if (isDaemon && isProgram('/bin/sh')) process.execve?.('/bin/sh', ['sh', '-c', `exit ${status}`], {})
  process.exit(status)
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    // It is not there (a container without a shell), or may not be run.
    return false
  }
}

function exitStatus(): ExitStatus {
  if (outputError === null || codeOf(outputError) === 'EPIPE') return status
  const error = new GatewayError('OUTPUT_UNWRITABLE', {
    what: 'Cannot write the output of the command.',
    why: `${messageOf(outputError)}.`,
    act: 'Write it to a disk with space. What was written is incomplete.',
  })
  return reportError(error, stderr, { json: isJson, env })
}
