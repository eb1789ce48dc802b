// jsonata-thread.ts: the thread that evaluates JSONata expressions. Only jsonata.ts starts it and sends it
// messages.
//
//   in    a batch of jobs      out   their outcomes, in the same order, after the whole batch
//
// Before each job, its number and the time are written to shared memory, where the other thread sees the
// current job even when this one never answers again. JSONata limits calls, lists and nesting; for what it
// cannot limit (a regular expression, the heap), the other thread or the heap limit ends this one.

import { parentPort, workerData } from 'node:worker_threads'
import jsonata from 'jsonata'
import { assert } from '../../std/assert.ts'
import {
  jobSlot,
  noJob,
  sinceSlot,
  thrownOf,
  ticksMs,
  type ExpressionLimits,
  type ExpressionResult,
  type ExpressionRefusal,
  type WorkerJob,
  type WorkerStart,
} from './jsonata-expression.ts'

const port = parentPort
assert(port, 'jsonata-thread.ts runs in a worker thread')
const { expressions, limits, progress } = workerData as WorkerStart
const slots = new Int32Array(progress)
const options = {
  timeout: Math.ceil(limits.timeoutMs * 0.8),
  stack: limits.depthMax,
  sequence: limits.sequenceMax,
}
const compiled = new Map(expressions.map(([source, text]) => [source, jsonata(text, options)]))

port.on('message', (jobs: readonly WorkerJob[]) => {
  // evaluateAll never rejects: it gives an outcome for every job.
  void evaluateAll(jobs).then((outcomes) => port.postMessage(outcomes))
})
port.postMessage('ready')

async function evaluateAll(jobs: readonly WorkerJob[]): Promise<ExpressionResult[]> {
  const outcomes: ExpressionResult[] = []
  for (const [index, job] of jobs.entries()) {
    Atomics.store(slots, sinceSlot, ticksMs())
    Atomics.store(slots, jobSlot, index)
    outcomes.push(await evaluate(job))
  }
  Atomics.store(slots, jobSlot, noJob)
  return outcomes
}

async function evaluate({ source, input, properties, packet }: WorkerJob): Promise<ExpressionResult> {
  const expression = compiled.get(source)
  try {
    assert(expression, 'a job names a source with an expression')
    const bindings = { properties: properties ?? {}, packet: packet ?? {} }
    const found: unknown = await expression.evaluate(input, bindings)
    return resultOf(found, limits)
  } catch (error) {
    return refusalOf(error)
  }
}

function refusalOf(error: unknown): ExpressionRefusal {
  const { code, message, position } = thrownOf(error)
  const place = position === null ? '' : ` (at position ${position} of the expression)`
  const detail = `The expression failed: ${message}${place}.`
  if (code === 'D1012') {
    const waited = `The expression took longer than ${limits.timeoutMs} ms.`
    return { kind: 'refused', reason: 'EXPRESSION_TIMEOUT', detail: waited }
  }
  const limited = code === 'D1011' || code === 'D2014' || code === 'D2015' || error instanceof RangeError
  return { kind: 'refused', reason: limited ? 'EXPRESSION_LIMIT' : 'EXPRESSION_FAILED', detail }
}

/** A result as plain JSON values, within the limits. */
function resultOf(
  found: unknown,
  { depthMax, sequenceMax, resultTextMax }: ExpressionLimits,
): ExpressionResult {
  let values = 0
  let characters = 0
  let refusal: ExpressionRefusal | null = null
  const value = plain(found, 0)
  return refusal ?? { kind: 'value', value }

  function plain(value: unknown, depth: number): unknown {
    values += 1
    if (depth > depthMax) return refuse('EXPRESSION_LIMIT', `is nested deeper than ${depthMax} levels`)
    if (values > sequenceMax) return refuse('EXPRESSION_LIMIT', `has more than ${sequenceMax} values`)
    if (typeof value === 'string') return text(value)
    if (typeof value === 'function' || typeof value === 'bigint' || typeof value === 'symbol')
      return refuse('EXPRESSION_FAILED', 'contains a function')
    if (typeof value !== 'object' || value === null) return value
    if (Array.isArray(value)) return list(value, depth)
    if ('_jsonata_lambda' in value || '_jsonata_function' in value || value instanceof RegExp)
      return refuse('EXPRESSION_FAILED', 'contains a function')
    const fields = Object.create(null) as Record<string, unknown>
    for (const [key, field] of Object.entries(value)) {
      if (refusal !== null) return undefined
      text(key)
      fields[key] = plain(field, depth + 1)
    }
    return fields
  }

  function list(elements: readonly unknown[], depth: number): unknown[] {
    const copies: unknown[] = []
    for (const element of elements) {
      if (refusal !== null) break
      copies.push(plain(element, depth + 1))
    }
    return copies
  }

  function text(value: string): string {
    characters += value.length
    if (characters > resultTextMax) refuse('EXPRESSION_LIMIT', `has more than ${resultTextMax} characters`)
    return value
  }

  function refuse(reason: ExpressionRefusal['reason'], what: string): undefined {
    refusal ??= { kind: 'refused', reason, detail: `The result of the expression ${what}.` }
  }
}
