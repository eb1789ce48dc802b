// jsonata.ts: JSONata expressions over messages, in a thread of their own: the way out for a source that
// the mapping language cannot read.
//
// Promises
//   The event loop never waits for an expression: a regular expression that never ends costs its own message.
//   Every message gets an outcome: a value, a refusal (it becomes a dead letter), or `later` (nothing was
//   evaluated: its envelope stays where it is and comes again).
//   Outcomes of one source come in the order of the calls.
//
// How
//   evaluate -> queue -> batch -> worker thread -> outcomes -> the callers
//
//   The worker tells in shared memory which job it is at and since when. A watch looks there: a job beyond
//   its time is refused (EXPRESSION_TIMEOUT), the thread is terminated and a new one started, and the other
//   jobs of the batch go to the new one. The jobs before the slow one are evaluated once more: expressions
//   have no effects. The same when the thread dies by itself (its heap is bounded): the job that it was at is
//   refused. The thread is started by the first message, so a config without expressions has none.
//
// Bounds, and what happens there
//   queueMax       `full` is true and evaluate answers `later`
//   memoryMiB      the thread ends, its job is refused (EXPRESSION_LIMIT)
//   starts         a thread that cannot be started, or dies again and again without a job, is tried again
//                  after a pause; meanwhile evaluate answers `later`
//   close          everything that waits is answered `later`, the thread is terminated

import { Worker } from 'node:worker_threads'
import type { CancelTimer, Clock } from '../../std/clock.ts'
import { messageOf } from '../../std/gateway-error.ts'
import {
  elapsedMs,
  expressionLimits,
  jobPlace,
  noJob,
  sincePlace,
  ticksMs,
  type ExpressionLimits,
  type ExpressionResult,
  type WorkerJob,
  type WorkerStart,
} from './expression.ts'

export type EvaluatorOptions = {
  /** Expressions by source. */
  expressions: ReadonlyMap<string, string>
  limits?: ExpressionLimits
  queueMax?: number
  memoryMiB?: number
}

export type Evaluation =
  ExpressionResult | { kind: 'later'; why: 'full' | 'aborted' | 'closed' | 'no worker' }

export type Evaluator = {
  /** Never rejects. `decoded` must not change until it is answered. */
  evaluate(source: string, decoded: unknown, signal?: AbortSignal): Promise<Evaluation>
  /** At the bound: wait for an answer before the next call. */
  readonly full: boolean
  counters(): EvaluatorCounters
  /** Why no worker could be started the last time; null when all is well. */
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
  /** Threads that ended with it in hand, though not while they were at it. */
  unlucky: number
  /** Known before its turn to be answered has come. */
  outcome: ExpressionResult | null
  answer(evaluation: Evaluation): void
}

/** One round trip between threads costs some 30 us: it is shared by so many jobs at most. */
const batchMax = 32
const startMaxMs = 10_000
const restartPauseMs = 1000
/** A thread that has a batch and shows no job for so long is stuck in something else than an expression. */
const stuckMs = 10_000
const unluckyMax = 3

/** The file of the thread has the extension of this file: .ts in a checkout, .js in what is compiled. */
const threadFile = new URL(`./jsonata-thread${import.meta.url.slice(-3)}`, import.meta.url)

export function createEvaluator({ clock }: { clock: Clock }, options: EvaluatorOptions): Evaluator {
  const { expressions, limits = expressionLimits, queueMax = 10_000, memoryMiB = 64 } = options
  const counters = { evaluated: 0, refused: 0, timeouts: 0, started: 0 }
  let queue: Job[] = []
  /** What is answered together, in this order; `posted` are those of it that the worker has. */
  let batch: Job[] = []
  let posted: Job[] = []
  let worker: Worker | null = null
  let ready = false
  let progress = new Int32Array(new SharedArrayBuffer(8))
  let cancelWatch: CancelTimer = () => {}
  let resting = false
  let closed = false
  let fault: string | null = null
  let ending: Promise<unknown> = Promise.resolve()

  function evaluate(source: string, input: unknown, signal?: AbortSignal): Promise<Evaluation> {
    return new Promise((answer) => {
      if (closed) answer({ kind: 'later', why: 'closed' })
      else if (signal?.aborted === true) answer({ kind: 'later', why: 'aborted' })
      else if (isFull()) answer({ kind: 'later', why: 'full' })
      else if (resting) answer({ kind: 'later', why: 'no worker' })
      else {
        queue.push({ source, input, signal, unlucky: 0, outcome: null, answer })
        pump()
      }
    })
  }

  function isFull(): boolean {
    return queue.length + batch.length >= queueMax
  }

  function pump(): void {
    if (closed || resting || batch.length > 0 || queue.length === 0) return
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
      settle([])
      return
    }
    Atomics.store(progress, jobPlace, noJob)
    // Whoever waits for an answer must not see the process end before it comes.
    worker.ref()
    worker.postMessage(
      posted.map(({ source, input }) => ({ source, input })),
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
      else settle(message)
    })
    started.on('error', (error) => ended(started, messageOf(error)))
    started.on('exit', (code) => ended(started, `it ended with status ${code}`))
    cancelWatch = clock.after(startMaxMs, () => ended(started, `it did not start within ${startMaxMs} ms`))
  }

  function isReady(): void {
    cancelWatch()
    ready = true
    fault = null
    worker?.unref()
    pump()
  }

  function settle(outcomes: readonly ExpressionResult[]): void {
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

  /** Looks after `delayMs` what the worker is at. Ends with the batch, or with the worker. */
  function watch(delayMs: number, idleMs = 0): void {
    const watched = worker
    cancelWatch = clock.after(delayMs, () => {
      if (worker !== watched || watched === null) return
      const at = Atomics.load(progress, jobPlace)
      if (at === noJob && idleMs + delayMs >= stuckMs) return ended(watched, 'it did not take its jobs')
      if (at === noJob) return watch(limits.timeoutMs, idleMs + delayMs)
      const tookMs = elapsedMs(Atomics.load(progress, sincePlace), ticksMs())
      if (tookMs < limits.timeoutMs) return watch(limits.timeoutMs - tookMs)
      const detail = `The expression took longer than ${limits.timeoutMs} ms and was stopped.`
      replace(watched, { kind: 'refused', reason: 'EXPRESSION_TIMEOUT', detail })
    })
  }

  /** The worker died, or never lived. */
  function ended(which: Worker, why: string): void {
    if (worker !== which) return
    if (!ready) rest(why)
    const detail = `The thread that evaluated the expression died: ${why}.`
    replace(which, { kind: 'refused', reason: 'EXPRESSION_LIMIT', detail })
  }

  /** Ends the worker; the job that it was at gets `refusal` when its turn comes, the others a new worker. */
  function replace(which: Worker, refusal: ExpressionResult): void {
    cancelWatch()
    worker = null
    ready = false
    ending = which.terminate()
    const culprit = Atomics.load(progress, jobPlace)
    for (const [index, job] of posted.entries()) {
      if (culprit === noJob) job.unlucky += 1
      if (index === culprit || job.unlucky > unluckyMax) job.outcome = refusal
    }
    queue = [...batch, ...queue]
    batch = []
    posted = []
    pump()
  }

  /** A worker that cannot start would be started again and again: not for a while. */
  function rest(why: string): void {
    fault = why
    resting = true
    answerAll('no worker')
    clock.after(restartPauseMs, () => {
      resting = false
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
    get full() {
      return isFull()
    },
    counters: () => ({ waiting: queue.length + batch.length, ...counters }),
    fault: () => fault,
    close,
  }
}
