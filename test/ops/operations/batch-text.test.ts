// What an action on batches says of its effects, where the transcripts (test/cli/transcripts) have no such batches.

import { expect, test } from 'vitest'
import { linesOfBlocks } from '../../../src/ops/operations/shown-block.ts'
import { operationNamed } from '../../../src/ops/operations/operations.ts'

const one = { batches: 1, payloads: 10, mayBeProcessed: { batches: 1, payloads: 10 } }
const refused = { ...one, mayBeProcessed: { batches: 0, payloads: 0 } }
const three = { batches: 3, payloads: 30, mayBeProcessed: { batches: 2, payloads: 20 } }
const skipped = [{ batchId: 'b', code: 'BATCH_BUSY', why: 'It is in a submission.' }]
const waits = { provider: 'north', endpoint: 'unauthorized', nextAttemptInMs: 540_000 }

test.each([
  ['reissue', three, 'may have processed 2 of the 3 batches. If it did, it processes 20 payloads twice'],
  ['mark-delivered', three, 'refused every submission of 1 of the 3 batches: 10 payloads are lost.'],
  ['split', refused, 'has processed nothing of it: it refused every submission.'],
  ['mark-delivered', refused, 'refused every submission of the batch: 10 payloads are lost.'],
  ['drop', { batches: 0, payloads: 0, skipped }, '  skipped: b: BATCH_BUSY: It is in a submission.'],
  [
    'retry',
    { ...one, waiting: [waits] },
    'is queued for a retry under the same batchId.\n  The endpoint of ',
  ],
  ['retry', { ...one, waiting: [waits] }, 'The next try is in 9 min; `probe` starts it now.'],
  ['retry', three, '3 batches with 30 payloads are retried under the same batchId, one after the other.'],
])('an action says before and after what it does: %s', (action, report, text) => {
  const answer = { action, dryRun: false, newBatches: 0, skipped: [], waiting: [], ...report }
  const { text: textOf, isDone } = operationNamed(`batches/${action}`)
  const shown = { now: 0, values: {}, prints: new Set<string>() }
  expect(linesOfBlocks(textOf?.(answer, shown) ?? [], Infinity).join('\n')).toContain(text)
  expect(isDone?.(answer, {})).toBe(answer.skipped.length === 0)
})
