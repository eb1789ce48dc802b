// What the commands say of one gateway with something in every list: a held batch, dead letters, messages in
// quarantine, delivered payloads. transcripts.md has the texts as a person reads them, but for times, ids and
// numbers that differ from run to run. After a change that is meant: `npm test -- test/cli/transcripts.test.ts -u`.

import { userInfo } from 'node:os'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { runCli } from '../support/cli-world.ts'
import { configText, odometerSource } from '../support/config-text.ts'
import { newFolder } from '../support/folders.ts'
import { messageOf, startPipeline } from '../support/pipeline-world.ts'

const commands = [
  'devices list --sort name',
  'devices list --state not_mapped --sort name',
  'devices show truck-2',
  'devices show nobody',
  'dead-letters',
  'dead-letters list --ids --reason NOT_JSON',
  'quarantine',
  'quarantine list --device new-truck',
  'batches',
  'alerts',
  'conditions',
  'ledger --outcome delivered',
  'probe',
  'dead-letters requeue --all --dry-run',
  'dead-letters purge --reason NOT_JSON',
  'dead-letters remap --dry-run',
  'quarantine drop --all --reason UNKNOWN_DEVICE',
  'quarantine release --device new-truck',
  'batches reissue --all',
  'batches mark-delivered --all',
  'batches drop --all',
  'devices mute truck-1 --until 2099-01-01',
  'devices unmute truck-1',
  'devices forget nobody',
  'conditions acknowledge BATCHES_HELD --until 2099-01-01',
  'conditions unacknowledge BATCHES_HELD',
  'conditions acknowledge BATCHES_HELD --key default|repeated --until 2099-01-01',
  'conditions unacknowledge BATCHES_HELD --key default|repeated',
  'reload',
  'audit',
]

/** What differs from run to run. */
const varying: readonly (readonly [RegExp | string, string])[] = [
  [/\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC/g, 'TIME'],
  [/20[2-8]\d-\d\d-\d\dT[\d:.]+Z/g, 'TIME'],
  [/tookMs [\d.]+/g, 'tookMs N'],
  [/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{32}/g, 'ID'],
  [/just now|\d+ (?:ms|s|min|h)(?: \d+ (?:min|s))? ago/g, 'AGO'],
  [/\bin \d+ min(?: \d+ s)?/g, 'in SOME TIME'],
  [/\d+ h \d+ min behind/g, 'SOME TIME behind'],
  [/\b\d+(?:\.\d+)? (?:ms|s|B|KiB)\b/g, 'AMOUNT'],
  [userInfo().username, 'USER'],
  [/ {2,}/g, '  '],
]

/** One thing after the other, so that each run has the same batches and the same order. */
async function preparedGateway() {
  const folder = await newFolder()
  await writeFile(join(folder, 'devices.csv'), 'device,asset_id\ntruck-1,TR-001\ntruck-2,TR-002\n')
  const pipeline = await startPipeline({
    folder,
    sandbox: { repeat: 'conflict', faults: { count: 1, after_commit: { cut: 1 } } },
    config: configText({
      sources: odometerSource,
      delivery: 'batch: { max_payloads: 1, linger: 20ms }, timeout: 300ms',
      more: 'devices: { file: devices.csv, unknown: quarantine }',
    }),
  })
  await pipeline.publish('truck-1', messageOf(1))
  await pipeline.until(() => pipeline.codes().includes('BATCHES_HELD'))
  await pipeline.publish('truck-1', messageOf(2))
  await pipeline.until(() => pipeline.status().totals.delivered === 1)
  await pipeline.publish('truck-1', '{"ts":"<script>alert(1)</script>"}')
  await pipeline.publish('new-truck', messageOf(3))
  await pipeline.publish('abc\u202efdp.exe', messageOf(4))
  await pipeline.publish('truck-1', 'not JSON')
  return pipeline
}

test('the commands of a gateway with something in every list say what transcripts.md has', async () => {
  const world = await preparedGateway()
  const texts: string[] = []
  for (const command of commands) {
    const { status, stdout, stderr } = await runCli([
      ...command.split(' '),
      '--url',
      world.gateway.addresses.control,
    ])
    texts.push(`$ ${command}\n${stdout}${stderr}(exit status ${status})\n`)
  }
  let text = texts.join('\n')
  for (const [pattern, word] of varying) text = text.replaceAll(pattern, word)
  await expect(text).toMatchFileSnapshot('transcripts.md')
})
