// `ledger` on the records of a stopped gateway: output formats and long outputs.

import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { openRecords } from '../../../src/ledger/ledger-records.ts'
import { openLevelStore } from '../../../src/storage/storage.ts'
import { runCli } from '../../support/cli-world.ts'
import { newFolder } from '../../support/folders.ts'
import { receiptNumbered, receiptOf, startAt, uuidNamed } from '../../support/ledger-world.ts'

/** A config whose daemon does not run, and a ledger in its spool. */
async function stoppedGateway(receipts: readonly { n: number; value: Buffer }[]): Promise<string> {
  const folder = await newFolder()
  const config = join(folder, 'gateway.yaml')
  await writeFile(
    config,
    `sources: [{ name: t, topic: "t/{device}", map: { latitude: { path: lat }, longitude: { path: lon } } }]
ingest: { broker: { listeners: [{ url: mqtt://127.0.0.1:1 }] } }
delivery: { base_url: http://127.0.0.1:1 }
ops: { listen: 127.0.0.1:1 }
`,
  )
  await mkdir(join(folder, 'spool'))
  const store = await openLevelStore(join(folder, 'spool/records'))
  const records = await openRecords(store, { blockReceiptBytesMax: 1024 ** 2, blockAgeMaxMs: Infinity })
  await records.append(receipts, startAt)
  await records.close()
  return config
}

const odd = receiptOf(
  [{ payloadId: uuidNamed('odd'), deviceTime: null, device: 'truck "7", \u202ered\u001b[31m' }],
  {
    batch: uuidNamed('batch'),
    request: null,
    fates: [{ kind: 'dead', reason: 'Refused', detail: 'a, "b"\nc', failure: null }],
  },
)

describe('ledger', () => {
  test('prints CSV with quotes where they are needed and times in UTC', async () => {
    const config = await stoppedGateway([receiptNumbered(1, 1), { n: 2, value: odd }])
    const { status, stdout } = await runCli(['ledger', '--config', config, '--csv'])
    expect(status).toBe(0)
    expect(stdout.split('\r\n')).toEqual([
      'settled_at,device,device_time,outcome,reason,detail,schedule,step,provider,lane,payload_id,batch_id,request_id',
      `2025-11-21T01:53:20.000Z,"truck ""7"", \\u{202e}red\\u{1b}[31m",,dead,Refused,"a, ""b""\\u{a}c",,,default,1,${uuidNamed('odd')},${uuidNamed('batch')},`,
      `2025-11-21T01:54:50.000Z,truck-0,2025-11-21T01:54:20.000Z,delivered,,,,,default,1,${uuidNamed('1 0')},${uuidNamed('batch 1')},request-1`,
      '',
    ])
  })

  test('prints a table with unprintable characters escaped', async () => {
    const config = await stoppedGateway([{ n: 2, value: odd }])
    const { stdout } = await runCli(['ledger', '--config', config])
    expect(stdout).toContain('truck "7", \\u{202e}red\\u{1b}[31m')
    expect(stdout.split('\n')).toHaveLength(3)
  })

  test('joins as many answers as --limit needs', async () => {
    const receipts = Array.from({ length: 31 }, (_, index) => receiptNumbered(index + 1, 700))
    const config = await stoppedGateway(receipts)
    const csv = await runCli(['ledger', '--config', config, '--csv', '--limit', '20500'])
    const ids = csv.stdout.split('\r\n').map((line) => line.split(',')[10])
    expect(new Set(ids.slice(1, -1)).size).toBe(20_500)
    const json = await runCli(['ledger', '--config', config, '--json', '--limit', '30000'])
    const answer = JSON.parse(json.stdout) as { entries: unknown[]; next: unknown }
    expect([answer.entries.length, answer.next]).toEqual([31 * 700, null])
    const table = await runCli(['ledger', '--config', config, '--limit', '10'])
    expect(table.stdout).toMatch(/There may be more entries\. Raise --limit to see them\.\n$/)
  })
})
