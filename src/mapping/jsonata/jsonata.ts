// jsonata.ts: evaluates JSONata expressions over messages in a thread of their own, for messages that the
// mapping language cannot read. The entry file of the folder.
//
// Guarantees
//   Non-blocking   the event loop never waits for an expression: a regular expression that never ends costs
//                  only its own message
//   Total          every message gets an outcome: a value, a refusal (it becomes a dead letter), or `later`
//                  (not evaluated; its envelope stays in the spool and is evaluated again)
//   Ordered        the outcomes of one source come in the order of the calls
//
// How it works
//   evaluate -> queue -> batch -> worker thread (jsonata-thread.ts) -> outcomes -> callers
//
//   The worker writes to shared memory which job it evaluates, and since when. A timer reads it: a job beyond
//   its time is refused (EXPRESSION_TIMEOUT), the thread is terminated, a new one is started, and it gets the
//   other jobs of the batch. The jobs before the slow one are evaluated again, which is safe because
//   expressions have no side effects. The same happens when the thread fails (its heap is bounded):
//   its current job is refused. The first message starts the thread, so a config without expressions has
//   none.
//
// Bounds
//   queueMax    `full` is true and evaluate gives `later`
//   memoryMiB   the thread ends and its current job is refused (EXPRESSION_LIMIT)
//   starts      a thread that cannot be started, or ends repeatedly without a job, is started again after a
//               pause; meanwhile evaluate gives `later`
//   close       all waiting calls get `later`, and the thread is terminated

import { Worker } from 'node:worker_threads'
import type { CancelTimer, Clock } from '../../std/clock.ts'
import { messageOf } from '../../std/gateway-error.ts'
import { packetValuesOf, type PacketProperties } from '../path/packet-properties.ts'
import {
  elapsedMs,
  expressionLimits,
  jobSlot,
  noJob,
  sinceSlot,
  ticksMs,
  type ExpressionLimits,
  type ExpressionResult,
  type WorkerJob,
  type WorkerStart,
} from './jsonata-expression.ts'

export type EvaluatorOptions = {
  /** Expressions by source. */
  expressions: ReadonlyMap<string, string>
  limits?: ExpressionLimits
  queueMax?: number
  memoryMiB?: number
}

export type Evaluation =
  ExpressionResult | { kind: 'later'; why: 'full' | 'aborted' | 'closed' | 'no worker' }

/** `message`: for the expression, which can read its properties. */
export type EvaluationOptions = { signal?: AbortSignal; message?: PacketProperties }

export type Evaluator = {
  /** Never rejects. `decoded` must not change until the promise resolves. */
  evaluate(source: string, decoded: unknown, more?: EvaluationOptions): Promise<Evaluation>
  /** The queue is at its bound: wait for a result before the next call. */
  full(): boolean
  counters(): EvaluatorCounters
  /** Why the last start of the worker failed; null after a successful one. */
  fault(): string | null
  close(): Promise<void>
}

export type EvaluatorCounters = {
  waiting: number
  evaluated: number
  refused: number
  timeouts: number
  /** Threads that were started. */
  started: number
}

type Job = WorkerJob & {
  signal: AbortSignal | undefined
  /** Threads that ended with this job in their batch, before they evaluated it. */
  threadsLost: number
  /** Set before the job is answered, when jobs before it still wait. */
  outcome: ExpressionResult | null
  answer(evaluation: Evaluation): void
}

/** Jobs that share one round trip between the threads, which costs some 30 us. */
const batchMax = 32
const startMaxMs = 10_000
const restartPauseMs = 1000
/** A thread that has a batch and starts no job for this long is stuck outside of an expression. */
const stuckMs = 10_000
const threadsLostMax = 3

/** The file of the thread has the extension of this file: .ts in a checkout, .js in the compiled package. */
const threadFile = new URL(`./jsonata-thread${import.meta.url.slice(-3)}`, import.meta.url)

export function createEvaluator({ clock }: { clock: Clock }, options: EvaluatorOptions): Evaluator {
  const { expressions, limits = expressionLimits, queueMax = 10_000, memoryMiB = 64 } = options
  const counters = { evaluated: 0, refused: 0, timeouts: 0, started: 0 }
  let queue: Job[] = []
  /** Jobs that are answered together, in this order; `posted` are those that the worker has. */
  let batch: Job[] = []
  let posted: Job[] = []
  let worker: Worker | null = null
  let ready = false
  let progress = new Int32Array(new SharedArrayBuffer(8))
  let cancelWatch: CancelTimer = () => {}
  let startsPaused = false
  let closed = false
  let fault: string | null = null
  let ending: Promise<unknown> = Promise.resolve()

  function evaluate(source: string, input: unknown, more: EvaluationOptions = {}): Promise<Evaluation> {
    const { signal, message } = more
    const properties = message?.userProperties ?? null
    const packet = message?.properties ? packetValuesOf(message.properties) : null
    return new Promise((answer) => {
      if (closed) answer({ kind: 'later', why: 'closed' })
      else if (signal?.aborted === true) answer({ kind: 'later', why: 'aborted' })
      else if (isFull()) answer({ kind: 'later', why: 'full' })
      else if (startsPaused) answer({ kind: 'later', why: 'no worker' })
      else {
        queue.push({ source, input, properties, packet, signal, threadsLost: 0, outcome: null, answer })
        pump()
      }
    })
  }

  function isFull(): boolean {
    return queue.length + batch.length >= queueMax
  }

  function pump(): void {
    if (closed || startsPaused || batch.length > 0 || queue.length === 0) return
    if (worker === null) start()
    if (worker === null || !ready) return
    while (batch.length < batchMax && queue.length > 0) {
      const job = queue.shift()
      if (job?.signal?.aborted === true) job.answer({ kind: 'later', why: 'aborted' })
      else if (job !== undefined) batch.push(job)
    }
    if (batch.length === 0) return
    posted = batch.filter(({ outcome }) => outcome === null)
    if (posted.length === 0) {
      endBatch([])
      return
    }
    Atomics.store(progress, jobSlot, noJob)
    // The process must not end while a caller waits for a result.
    worker.ref()
    worker.postMessage(
      posted.map(({ source, input, properties, packet }) => ({ source, input, properties, packet })),
      [],
    )
    watch(limits.timeoutMs)
  }

  function start(): void {
    counters.started += 1
    progress = new Int32Array(new SharedArrayBuffer(8))
    ready = false
    const workerData: WorkerStart = { expressions: [...expressions], limits, progress: progress.buffer }
    const started = new Worker(threadFile, {
      workerData,
      resourceLimits: { maxOldGenerationSizeMb: memoryMiB, maxYoungGenerationSizeMb: 16 },
    })
    worker = started
    started.on('message', (message: 'ready' | ExpressionResult[]) => {
      if (worker !== started) return
      if (message === 'ready') isReady()
      else endBatch(message)
    })
    started.on('error', (error) => onEnd(started, messageOf(error)))
    started.on('exit', (code) => onEnd(started, `it ended with status ${code}`))
    cancelWatch = clock.after(startMaxMs, () => onEnd(started, `it did not start within ${startMaxMs} ms`))
  }

  function isReady(): void {
    cancelWatch()
    ready = true
    fault = null
    worker?.unref()
    pump()
  }

  function endBatch(outcomes: readonly ExpressionResult[]): void {
    cancelWatch()
    for (const [index, job] of posted.entries()) job.outcome = outcomes[index] ?? null
    const jobs = batch
    batch = []
    posted = []
    for (const job of jobs) {
      if (job.outcome !== null) answer(job, job.outcome)
      else queue.unshift(job)
    }
    worker?.unref()
    pump()
  }

  function answer(job: Job, outcome: ExpressionResult): void {
    counters.evaluated += 1
    if (outcome.kind === 'refused') counters.refused += 1
    if (outcome.kind === 'refused' && outcome.reason === 'EXPRESSION_TIMEOUT') counters.timeouts += 1
    job.answer(outcome)
  }

  /** Checks the current job of the worker after `delayMs`. Ends with the batch, or with the worker. */
  function watch(delayMs: number, idleMs = 0): void {
    const watched = worker
    cancelWatch = clock.after(delayMs, () => {
      if (worker !== watched || watched === null) return
      const at = Atomics.load(progress, jobSlot)
      if (at === noJob && idleMs + delayMs >= stuckMs) return onEnd(watched, 'it did not start its jobs')
      if (at === noJob) return watch(limits.timeoutMs, idleMs + delayMs)
      const tookMs = elapsedMs(Atomics.load(progress, sinceSlot), ticksMs())
      if (tookMs < limits.timeoutMs) return watch(limits.timeoutMs - tookMs)
      const detail = `The expression took longer than ${limits.timeoutMs} ms and was stopped.`
      replace(watched, { kind: 'refused', reason: 'EXPRESSION_TIMEOUT', detail })
    })
  }

  /** The worker ended, or did not start. */
  function onEnd(which: Worker, why: string): void {
    if (worker !== which) return
    if (!ready) pauseStarts(why)
    const detail = `The thread that evaluated the expression ended: ${why}.`
    replace(which, { kind: 'refused', reason: 'EXPRESSION_LIMIT', detail })
  }

  /** Terminates the worker. Its current job is answered with `refusal`; the others go to a new worker. */
  function replace(which: Worker, refusal: ExpressionResult): void {
    cancelWatch()
    worker = null
    ready = false
    ending = which.terminate()
    const current = Atomics.load(progress, jobSlot)
    for (const [index, job] of posted.entries()) {
      if (current === noJob) job.threadsLost += 1
      if (index === current || job.threadsLost > threadsLostMax) job.outcome = refusal
    }
    queue = [...batch, ...queue]
    batch = []
    posted = []
    pump()
  }

  /** A worker that cannot start is started again only after a pause. */
  function pauseStarts(why: string): void {
    fault = why
    startsPaused = true
    answerAll('no worker')
    clock.after(restartPauseMs, () => {
      startsPaused = false
      pump()
    })
  }

  function answerAll(why: 'closed' | 'no worker'): void {
    const jobs = [...batch, ...queue]
    batch = []
    posted = []
    queue = []
    for (const job of jobs) job.answer({ kind: 'later', why })
  }

  async function close(): Promise<void> {
    closed = true
    cancelWatch()
    const last = worker
    worker = null
    answerAll('closed')
    await ending
    await last?.terminate()
  }

  return {
    evaluate,
    full() {
      return isFull()
    },
    counters: () => ({ waiting: queue.length + batch.length, ...counters }),
    fault: () => fault,
    close,
  }
}
