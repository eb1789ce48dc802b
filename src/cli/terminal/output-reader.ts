// output-reader.ts: notices that nobody reads the standard output any more, also while nothing is written.
//
// The kernel reports the end of a pipe's reader at the next write, and to poll(2) at once. Node has no
// poll(2) for a descriptor that is only written. WASI has one, `poll_oneoff`; Node brings it and calls libuv
// with it. The call takes 0.3 ms and waits up to one more where the pipe is full. A write of no bytes tells
// nothing: the kernel does not look at the reader then. A socket is left alone, because its other end may
// have closed only the direction that we do not use (ssh does).

import { fstatSync } from 'node:fs'

type Memory = { readonly buffer: ArrayBuffer }
/** A part of the language that its type library does not have. */
declare const WebAssembly: { Memory: new (size: { initial: number }) => Memory }

const stdoutFd = 1
const watchMs = 250

/** Calls `onGone` once, soon after the reader of a pipe has ended. Does not keep the process alive. */
export function watchOutputReader(onGone: () => void): void {
  const hasReader = readerCheck(stdoutFd)
  if (hasReader === null) return
  const timer = setInterval(() => {
    if (hasReader()) return
    clearInterval(timer)
    onGone()
  }, watchMs)
  timer.unref()
}

/** Null where it cannot be found out: the next write tells it then. */
function readerCheck(fd: number): (() => boolean) | null {
  try {
    if (!fstatSync(fd).isFIFO()) return null
    const memory = new WebAssembly.Memory({ initial: 1 })
    const poll = pollOneoff(memory, fd)
    return () => {
      layOutQuestions(memory)
      // Another outcome than success means that nothing was found out.
      return poll(questionsAt, answersAt, 2, countAt) !== 0 || !answersHaveError(memory)
    }
  } catch (error) {
    // A Node without WASI: the error of the next write remains. Errors in this file must be found.
    if (error instanceof ReferenceError) throw error
    return null
  }
}

type PollOneoff = (questionsAt: number, answersAt: number, questions: number, countAt: number) => number

function pollOneoff(memory: Memory, fd: number): PollOneoff {
  const { emitWarning } = process
  try {
    // Node says on stderr that WASI is experimental. That is nothing for the person who runs the command.
    process.emitWarning = () => undefined
    const { WASI } = process.getBuiltinModule('node:wasi')
    const wasi = new WASI({ version: 'preview1', stdout: fd })
    wasi.initialize({ exports: { memory } })
    const { wasi_snapshot_preview1: calls } = wasi.getImportObject() as {
      wasi_snapshot_preview1: { poll_oneoff: PollOneoff }
    }
    return calls.poll_oneoff
  } finally {
    process.emitWarning = emitWarning
  }
}

// The layout of WASI preview 1: subscriptions of 48 bytes, events of 32 bytes.
const questionsAt = 0
const answersAt = 256
const countAt = 512
const subscriptionBytes = 48
const eventBytes = 32
const monotonicClock = 1
const fdWrite = 2

/** The time to wait at most, because a full pipe with a reader gives no answer, and standard output. */
function layOutQuestions(memory: Memory): void {
  new Uint8Array(memory.buffer, 0, countAt + 4).fill(0)
  const view = new DataView(memory.buffer)
  view.setUint32(questionsAt + 16, monotonicClock, true)
  // Not zero: the clock alone would answer then.
  view.setBigUint64(questionsAt + 24, 1_000_000n, true)
  view.setUint8(questionsAt + subscriptionBytes + 8, fdWrite)
  view.setUint32(questionsAt + subscriptionBytes + 16, 1, true)
}

/** libuv reports POLLERR as an error of the descriptor. */
function answersHaveError(memory: Memory): boolean {
  const view = new DataView(memory.buffer)
  const count = view.getUint32(countAt, true)
  for (let at = answersAt; at < answersAt + count * eventBytes; at += eventBytes)
    if (view.getUint8(at + 10) === fdWrite && view.getUint16(at + 8, true) !== 0) return true
  return false
}
