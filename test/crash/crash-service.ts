// crash-service.ts: the service of a crash run, in the process of the test. It runs longer than all daemons,
// keeps every batchId and writes accepted payloads to a file. Some of its answers are faults, so that batches
// are sent again and payloads are retried while daemons are killed.

import { randomUUID } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import {
  createSandbox,
  requirements,
  sandboxAccount,
  type FaultsInput,
  type Sandbox,
} from '../../src/sandbox/sandbox.ts'
import { systemClock } from '../../src/std/clock.ts'
import { doomedDevice, type Accepted } from './crash-message.ts'

export type Service = AsyncDisposable & {
  url: string
  stats: Sandbox['stats']
  /** Answers 500 to every request, or normally again. */
  setDown(down: boolean): void
  /** Called synchronously after a batch was accepted and before its answer is sent. */
  onAccepted(listener: (() => void) | null): void
  /** Everything that was accepted, from the file. */
  accepted(): AsyncIterable<{ batchId: string | null; payload: Accepted & { payloadId: string } }>
}

const usualFaults: FaultsInput = {
  latency: { min: 0, max: 4 },
  cut: { before_reading: 0.02, after_reading: 0.02 },
  status: { '500': 0.05, '503': 0.02, '429': 0.01 },
  after_commit: { cut: 0.06, error: 0.03 },
  body: { truncated: 0.02, html: 0.01 },
  fail: [
    {
      device: doomedDevice,
      error_type: 'Validation',
      message: 'This device is refused.',
      field: 'gps.latitude',
    },
    { rate: 0.03, error_type: 'Busy', message: 'Later, please.' },
  ],
}

export async function openService(folder: string, random: () => number): Promise<Service> {
  const acceptedPath = join(folder, 'accepted.ndjson')
  let listener: (() => void) | null = null
  const sandbox = createSandbox(
    { clock: systemClock, newId: () => randomUUID(), random },
    {
      accounts: [sandboxAccount],
      required: requirements,
      repeat: 'same',
      batchesRememberedMax: 5_000_000,
      bytesRememberedMax: 2 * 1024 ** 3,
      receivedMax: 0,
      acceptedPath,
      faults: usualFaults,
      onAccepted: () => listener?.(),
    },
  )
  const { url } = await sandbox.listen({ host: '127.0.0.1', port: 0 })

  async function* accepted() {
    for await (const line of createInterface({ input: createReadStream(acceptedPath) }))
      yield JSON.parse(line) as { batchId: string | null; payload: Accepted & { payloadId: string } }
  }

  return {
    url,
    stats: () => sandbox.stats(),
    setDown: (down) => sandbox.setFaults(down ? { always: 500 } : usualFaults),
    onAccepted(next) {
      listener = next
    },
    accepted,
    [Symbol.asyncDispose]: () => sandbox.close(),
  }
}
