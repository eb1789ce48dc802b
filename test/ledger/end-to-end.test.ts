// Devices, the real gateway and the sandbox, and the ledger over HTTP and on the command line.

import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { IsoTimes } from '../../src/std/iso-times.ts'
import type { LedgerAnswer } from '../../src/ledger/ledger.ts'
import { everything } from '../../src/ledger/record-keys.ts'
import { openLevelStore } from '../../src/storage/storage.ts'
import { runCli } from '../support/cli-world.ts'
import { messageOf, startPipeline, type Pipeline, type PipelineOptions } from '../support/pipeline-world.ts'

/** Yesterday, 14:03:20 local time, and the minute as a person types it. */
const when = new Date(Date.now() - 86_400_000)
when.setHours(14, 3, 20, 0)
const two = (value: number) => String(value).padStart(2, '0')
const asTyped = `${when.getFullYear()}-${two(when.getMonth() + 1)}-${two(when.getDate())}T14:03`

const delivered = (pipeline: Pipeline) => pipeline.status().totals.delivered

async function publishFleet(pipeline: Pipeline, devices: number): Promise<void> {
  for (let vehicle = 1; vehicle <= devices; vehicle += 1) {
    const name = `truck-${vehicle}`
    const at = (minute: number) => when.getTime() + minute * 60_000 + vehicle
    await pipeline.publish(name, ...[-2, -1, 0, 1, 2].map((minute) => messageOf(vehicle, { ts: at(minute) })))
  }
}

async function ask(pipeline: Pipeline, query: string): Promise<{ status: number; answer: LedgerAnswer }> {
  const response = await fetch(`${pipeline.gateway.addresses.ops}/ledger?${query}`)
  return { status: response.status, answer: (await response.json()) as LedgerAnswer }
}

const small = { delivery: 'batch: { max_payloads: 7, linger: 5ms }' }

describe('vehicle 7 at 14:03', () => {
  test('is found with the requestId of the service', async () => {
    const pipeline = await startPipeline({ sections: small })
    await publishFleet(pipeline, 9)
    await pipeline.until(() => delivered(pipeline) === 45)
    const url = pipeline.gateway.addresses.ops
    const command = ['ledger', '--url', url, '--device', 'truck-7', '--at', asTyped]
    const { status, stdout } = await runCli([...command, '--json'])
    expect(status).toBe(0)
    const { entries } = JSON.parse(stdout) as IsoTimes<LedgerAnswer>
    const received = pipeline.sandbox
      .received({ device: 'truck-7', limit: 10 })
      .filter(({ payload }) => Math.abs(Number(payload['signalTimestamp']) - when.getTime()) < 100)
    expect(received).toHaveLength(1)
    // Of 14:02:20, 14:03:20 and 14:04:20 the last one is more than a minute from 14:03.
    expect(entries.map(({ deviceTime }) => Date.parse(deviceTime ?? '') - when.getTime() - 7)).toEqual([
      0, -60_000,
    ])
    expect(entries[0]).toMatchObject({
      device: 'truck-7',
      outcome: 'delivered',
      requestId: received[0]?.requestId,
      batchId: received[0]?.batchId,
      payloadId: received[0]?.payload['payloadId'],
    })
    expect(Math.abs(Date.now() - Date.parse(entries[0]?.at ?? ''))).toBeLessThan(60_000)
    const table = (await runCli(command)).stdout.split('\n')
    expect(table[0]).toMatch(/^Only at .* 14:03:00 \S+\.$/)
    expect(table[1]).toMatch(/^settled +device +measured +outcome +requestId +batchId +payloadId$/)
    expect(table[2]).toContain(received[0]?.requestId)
    expect(table).toHaveLength(5)
  })

  test('is found by payload, batch and request, too, in upper or lower case', async () => {
    const pipeline = await startPipeline({ sections: small })
    await publishFleet(pipeline, 3)
    await pipeline.until(() => delivered(pipeline) === 15)
    const [one] = pipeline.sandbox.received({ limit: 1 })
    const { requestId = '', batchId = '' } = one ?? {}
    const payload = String(one?.payload['payloadId'])
    const size = pipeline.sandbox
      .received({ limit: 100 })
      .filter((other) => other.requestId === requestId).length
    for (const write of [String, (id: string | null) => String(id).toUpperCase()]) {
      const by = async (question: string) => (await ask(pipeline, question)).answer.entries
      expect(await by(`payload=${write(payload)}`)).toMatchObject([{ requestId }])
      expect(await by(`batch=${write(batchId)}`)).toHaveLength(size)
      expect(await by(`request=${write(requestId)}`)).toHaveLength(size)
    }
    expect((await ask(pipeline, 'limit=15')).answer.entries).toHaveLength(15)
    const counted = { open: true, records: 15, behind: 0, dropped: 0, missed: 0 }
    expect(pipeline.status().ledger).toMatchObject(counted)
    const metrics = await (await fetch(`${pipeline.gateway.addresses.ops}/metrics`)).text()
    for (const line of ['gateway_ledger_records 15', 'gateway_ledger_behind_receipts 0'])
      expect(metrics.split('\n')).toContain(line)
  })

  test.each<[string, PipelineOptions['sections'] & object]>([
    ['sent one by one', { delivery: 'mode: single' }],
    [
      'named by their assets alone',
      { delivery: 'batch: { linger: 5ms }', defaults: '{}\ndevices: { identify: asset }' },
    ],
  ])('is found when payloads are %s', async (_, sections) => {
    const pipeline = await startPipeline({ sections })
    await publishFleet(pipeline, 2)
    await pipeline.until(() => delivered(pipeline) === 10)
    const { answer } = await ask(pipeline, `device=truck-2&at=${asTyped}`)
    const ids = pipeline.sandbox.received({ limit: 100 }).map(({ requestId }) => requestId)
    expect(answer.entries).toHaveLength(2)
    for (const { requestId } of answer.entries) expect(ids).toContain(requestId)
  })

  test('has the reasons of retries and of the dead letter', async () => {
    const pipeline = await startPipeline({
      sections: { delivery: 'batch: { linger: 5ms }, errors: { Validation: [10ms] }' },
      sandbox: {
        faults: { fail: [{ device: 'truck-2', error_type: 'Validation', message: 'Come back later.' }] },
      },
    })
    await publishFleet(pipeline, 2)
    await pipeline.until(() => pipeline.status().totals.dead === 5)
    const dead = (await ask(pipeline, 'outcome=dead')).answer.entries
    expect(dead).toHaveLength(5)
    expect(dead[0]).toMatchObject({ device: 'truck-2', reason: 'Validation', detail: 'Come back later.' })
    const { stdout } = await runCli([
      'ledger',
      '--url',
      pipeline.gateway.addresses.ops,
      '--device',
      'truck-2',
      '--at',
      asTyped,
    ])
    expect(stdout).toMatch(/dead \(Validation: Come back later\.\)/)
    expect(stdout).toMatch(/retried after attempt 1 \(Validation: Come back later\.\)/)
    expect((await ask(pipeline, 'device=truck-2&outcome=delivered')).answer.entries).toEqual([])
  })
})

test('a question that cannot be meant is refused with its reason, over HTTP and by the command', async () => {
  const pipeline = await startPipeline()
  const refused: [query: string, why: RegExp][] = [
    ['vehicle=x', /Unknown parameter "vehicle"/],
    ['device=', /device must be a text/],
    ['at=14:03&from=14:00', /`at` is given with `from` or `to`/],
    ['from=14:03&to=14:00', /`from` is later than `to`/],
    ['to=noon', /to must be a time/],
    ['outcome=lost', /outcome must be one of delivered/],
    ['limit=0', /limit must be a whole number from 1 to 10000/],
    ['limit=10001', /limit must be/],
    ['after=7', /`after` does not say where to continue/],
  ]
  for (const [query, why] of refused)
    expect([query, await ask(pipeline, query)]).toEqual([
      query,
      {
        status: 400,
        answer: expect.objectContaining({ detail: expect.stringMatching(why) as string }) as unknown,
      },
    ])
  const url = ['--url', pipeline.gateway.addresses.ops]
  const both = await runCli(['ledger', '--at', '14:03', '--from', '14:00', ...url])
  expect(both).toMatchObject({ status: 2, stderr: expect.stringContaining('Each of them sets') as string })
})

describe('a ledger that cannot answer', () => {
  test('because it is disabled says so and stores nothing', async () => {
    const pipeline = await startPipeline({
      sections: { ...small, log: '{ level: info }\nledger: { enabled: false }' },
    })
    await publishFleet(pipeline, 1)
    await pipeline.until(() => delivered(pipeline) === 5)
    expect(await ask(pipeline, 'device=truck-1')).toMatchObject({ status: 404 })
    expect(pipeline.status().ledger).toBeNull()
    const { status, stderr } = await runCli(['ledger', '--url', pipeline.gateway.addresses.ops])
    expect(status).toBe(1)
    expect(stderr).toMatch(/ledger\.enabled/)
    // The records of devices are in the same database.
    await pipeline.gateway.stop('to read')
    const records = await openLevelStore(join(pipeline.folder, 'spool/records'))
    for await (const page of records.pages(everything)) expect(page).toEqual([])
    await records.close()
  })

  test('because the daemon is stopped is read from its files, unless another process has opened them', async () => {
    const pipeline = await startPipeline({ sections: small })
    await publishFleet(pipeline, 2)
    await pipeline.until(() => delivered(pipeline) === 10)
    // No daemon answers at this address, and the records are in use.
    const config = join(pipeline.folder, 'elsewhere.yaml')
    const text = await readFile(join(pipeline.folder, 'gateway.yaml'), 'utf8')
    const socket = join(pipeline.folder, 'nobody.sock')
    const elsewhere = `ops: { listen: "127.0.0.1:1", control_socket: ${JSON.stringify(socket)} }`
    await writeFile(config, text.replace(/^ops: .*$/m, elsewhere))
    const command = ['ledger', '--config', config, '--device', 'truck-2', '--json']
    await pipeline.until(() => pipeline.status().ledger?.open === true)
    const locked = await runCli(command)
    expect(locked.status).toBe(1)
    expect(JSON.parse(locked.stderr)).toMatchObject({ error: { code: 'LEDGER_LOCKED' } })
    await pipeline.gateway.stop('the test reads its files')
    const { status, stdout } = await runCli(command)
    expect(status).toBe(0)
    expect((JSON.parse(stdout) as LedgerAnswer).entries).toHaveLength(5)
  })
})
