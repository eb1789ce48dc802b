// What the commands say and do, as a person at the terminal meets it: each story is a gateway, a service and
// devices, and what is typed one after the other. The files in transcripts/ have the texts, but for times, ids and numbers
// that differ from run to run. After a change that is meant, read the difference:
// `npm test -- test/cli/transcripts.test.ts -u`.

import { userInfo } from 'node:os'
import { chmod, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { sandboxAccount } from '../../src/sandbox/sandbox.ts'
import { runCli } from '../support/cli-world.ts'
import { configText, odometerSource } from '../support/config-text.ts'
import { eventually } from '../support/eventually.ts'
import { newFolder } from '../support/folders.ts'
import { get } from '../support/ops-world.ts'
import { messageOf, startPipeline, type Pipeline } from '../support/pipeline-world.ts'

/**
 * A command, with its input behind `<<<`; or `= totals.dead sandbox.duplicatesAcrossBatches`: facts of the gateway and
 * of the service; or `cat FILE`; or what devices and the service do meanwhile, and a text of it. `{batch}`, `{dead}` and `{kept}` are the
 * first ids of the lists, as they are or last were. A command with --path or --config finds the spool without a daemon.
 */
type Step = string | ((world: Pipeline) => unknown)

type Story = { title: string; world(): Promise<Pipeline>; steps: readonly Step[] }

const until = (holds: (status: ReturnType<Pipeline['status']>) => boolean) => (world: Pipeline) =>
  world.until(() => holds(world.status()))
const delivered = (count: number) => until(({ totals }) => totals.delivered === count)
const noDifference = '= internals.conservation.messages.difference internals.conservation.payloads.difference'

const held = { repeat: 'conflict', faults: { count: 1, after_commit: { cut: 1 } } } as const

/** The service loses the answer to the first batches, and then says that it knows them. */
const batchesHeld = (count: number) => async () => {
  const pipeline = await startPipeline({
    sandbox: held,
    sections: { delivery: 'batch: { max_payloads: 1, linger: 20ms }, timeout: 300ms' },
  })
  for (let n = 1; n <= count; n += 1) {
    pipeline.sandbox.setFaults(held.faults)
    await pipeline.publish(`truck-${n}`, messageOf(n))
    await until(({ lanes }) => lanes.reduce((sum, { held: one }) => sum + one, 0) === n)(pipeline)
  }
  return pipeline
}

async function withTable(more: Parameters<typeof startPipeline>[0] = {}, delivery?: string) {
  const folder = await newFolder()
  await writeFile(join(folder, 'devices.csv'), 'device,asset_id\ntruck-1,TR-001\ntruck-2,TR-002\n')
  const config = configText({
    sources: odometerSource,
    ...(delivery !== undefined && { delivery }),
    more: 'devices: { file: devices.csv, unknown: quarantine }',
  })
  return startPipeline({ folder, config, ...more })
}

/** One thing after the other, so that each run has the same batches and the same order. */
async function somethingInEveryList() {
  const pipeline = await withTable(
    { sandbox: held },
    'batch: { max_payloads: 1, linger: 20ms }, timeout: 300ms',
  )
  await pipeline.publish('truck-1', messageOf(1))
  await pipeline.until(() => pipeline.codes().includes('BATCHES_HELD'))
  await pipeline.publish('truck-1', messageOf(2))
  await delivered(1)(pipeline)
  await pipeline.publish('truck-1', '{"ts":"<script>alert(1)</script>"}')
  await pipeline.publish('new-truck', messageOf(3))
  await pipeline.publish('abc\u202efdp.exe', messageOf(4))
  await pipeline.publish('truck-1', 'not JSON')
  return pipeline
}

/** Of a clock that was never set. */
const unset =
  (device: string, ...numbers: number[]) =>
  (world: Pipeline) =>
    world.publish(device, ...numbers.map((n) => messageOf(n, { ts: n * 1000 })))

/** Three refused payloads in the dead letters. An accepted fourth one proves that the service works. */
async function threeRefused() {
  const rule = { error_type: 'Validation', message: 'The speed is not valid.', has: 'signals' }
  const pipeline = await startPipeline({
    sections: { delivery: 'batch: { linger: 20ms }, errors: { Validation: [] }' },
    sandbox: { faults: { fail: [{ ...rule, field: 'signals.0.value' }] } },
  })
  await pipeline.publish('truck-1', messageOf(1), messageOf(2))
  await pipeline.publish('truck-2', messageOf(3))
  await pipeline.publish('witness', messageOf(4, { odometer: undefined }))
  await until(({ totals, spool }) => totals.delivered === 1 && spool.deadLetters === 3)(pipeline)
  return pipeline
}

/** A message with other names, and one of bytes that are no text. */
async function foreignMessages() {
  const pipeline = await startPipeline({ config: configText() })
  await pipeline.publish('truck-1', JSON.stringify({ ts: 1_763_690_000_000, latitude: 52, lon: 13 }))
  await pipeline.publish('binary', '\u0000\u0001\u0002')
  return pipeline
}

async function correct(path: string, from: string, to: string): Promise<void> {
  await writeFile(path, (await readFile(path, 'utf8')).replace(from, to))
}

const away = 'http://127.0.0.1:1'

async function unauthorized() {
  const pipeline = await startPipeline({ sandbox: { faults: { status: { 403: 1 } } } })
  await pipeline.publish('truck-7', messageOf(1))
  await until(({ providers }) => providers[0]?.endpoint === 'unauthorized')(pipeline)
  return pipeline
}

/** A table of devices, and a file of users. */
async function withUsers() {
  const folder = await newFolder()
  await writeFile(join(folder, 'devices.csv'), '# of the depot\ndevice,asset_id\ntruck-1,TR-001\n')
  await writeFile(join(folder, 'users'), '')
  const broker =
    '{ listeners: [{ url: "mqtt://127.0.0.1:0" }], access: { anonymous: true, password_file: ./users } }'
  const config = configText({ broker, more: 'devices: { file: ./devices.csv, unknown: quarantine }' })
  const pipeline = await startPipeline({ folder, config })
  const { ops } = pipeline.gateway.addresses
  await eventually(
    async () => (JSON.parse((await get(ops, '/devices')).text) as { restored: boolean }).restored,
  )
  return pipeline
}

const modeOf = async (path: string) => `mode ${((await stat(path)).mode & 0o777).toString(8)}`

async function passwordOf(folder: string, user: string, password: string): Promise<string> {
  const checked = await runCli(['passwd', join(folder, 'users'), user, '--verify'], { stdin: password })
  return `the password of ${user}: exit status ${checked.status}`
}

const counters = `
  - name: trucks
    topic: telemetry/v1/{device}
    map:
      time: { path: ts, format: ms }
      signals:
        - { type: OBD_LIFETIME_ODOMETER, path: odometer, unit: km }
        - { type: OBD_TOTAL_ENGINE_TIME, path: hours, unit: h, part: ENGINE }`

/** A message with readings that the mapping compares with those before; it is delivered, or ignored. */
const reads =
  (n: number, ...[odometer, hours]: [number, number]) =>
  async (world: Pipeline) => {
    const settled = () => world.status().totals.delivered + world.status().totals.ignored
    const before = settled()
    await world.publish('truck-7', messageOf(n, { odometer, hours }))
    await world.until(() => settled() > before)
  }

/** The values of the payloads that the service has. */
const sentValues = ({ sandbox }: Pipeline) =>
  sandbox
    .received({ limit: 100 })
    .map(({ payload }) => (payload as { signals?: { value: string }[] }).signals ?? [])
    .map((signals) => signals.map(({ value }) => value).join('+'))
    .toSorted()
    .join(' ')

/** The times of the payloads that the service has: of 1970, or of today. */
const sentTimes = ({ sandbox }: Pipeline) =>
  sandbox
    .received({ limit: 100 })
    .map(({ payload }) => (payload as { signalTimestamp: number }).signalTimestamp)
    .map((time) => (time < 1e9 ? String(time) : 'now'))
    .toSorted()
    .join(' ')

const stories: readonly Story[] = [
  {
    title: 'A gateway with something in every list',
    world: somethingInEveryList,
    steps: [
      'devices list --sort name',
      'devices list --state not_mapped --sort name',
      'devices show truck-2',
      'devices show nobody',
      'dead-letters',
      'dead-letters list --ids --reason NOT_JSON',
      'dead-letters list --reason OTHER',
      'dead-letters show {dead}',
      'dead-letters show none',
      'map --preset simulator --from-dead-letters',
      'map --preset simulator --from-dead-letters --device truck-1 --reason NOT_JSON',
      'map --preset simulator --from-dead-letters --count 1',
      'quarantine',
      'quarantine list --device new-truck',
      'quarantine list --device unknown',
      'batches',
      'batches list --provider default --older-than 1h',
      'batches list --provider nosuch',
      'batches list --reason stuck',
      'batches show {batch}',
      'batches show none',
      'alerts',
      'conditions',
      'ledger --outcome delivered',
      'ledger --device nobody',
      'probe',
      'dead-letters requeue --all --dry-run',
      'dead-letters purge --reason NOT_JSON',
      'dead-letters remap --dry-run',
      'quarantine drop --all --reason UNKNOWN_DEVICE',
      'quarantine release --device new-truck',
      'quarantine release --all',
      'batches reissue --all',
      'batches split {batch}',
      'batches mark-delivered --all',
      'batches drop --all',
      'batches drop {batch} --discard --dry-run --yes',
      'devices mute truck-1 --until 2099-01-01',
      'devices unmute truck-1',
      'devices forget nobody',
      'conditions acknowledge BATCHES_HELD --until 2099-01-01',
      'conditions unacknowledge BATCHES_HELD',
      'conditions acknowledge BATCHES_HELD --key default|repeated --until 2099-01-01',
      'conditions unacknowledge BATCHES_HELD --key default|repeated',
      'spool snapshot --to {folder}/snapshot',
      'spool snapshot --to {folder}/snapshot',
      'spool restore --from {folder}/snapshot --path {folder}/restored',
      'audit --path {folder}/restored',
      'spool assign-lane --lane 7 --provider default',
      'spool assign-lane --lane 7 --provider nobody',
      'spool verify',
      'reload',
      'audit',
      ({ folder }) => writeFile(join(folder, 'gateway.yaml'), 'sources: [{ name: a }]\n'),
      'reload',
    ],
  },
  {
    title: 'Batches that the service processed and answers 409 for',
    world: batchesHeld(3),
    steps: [
      'batches mark-delivered {batch} --yes',
      'ledger --outcome delivered',
      'batches reissue --reason stuck --reason repeated --older-than 0s --provider default',
      'batches reissue {batch} --yes',
      delivered(2),
      '= sandbox.duplicatesAcrossBatches',
      'batches drop --all --yes',
      'dead-letters --reason DROPPED_BY_OPERATOR',
      until(({ conditions }) => conditions.every(({ code }) => code !== 'BATCHES_HELD')),
      'batches',
      'batches retry 00000000-0000-4000-8000-000000000001',
      '= totals.delivered spool.deadLetters internals.conservation.payloads.difference',
    ],
  },
  {
    title: 'Messages of clocks that were never set, and of a device that is not listed',
    world: withTable,
    steps: [
      'quarantine',
      unset('truck-1', 1, 2, 3),
      (world) => world.publish('unlisted', messageOf(4)),
      unset('truck-2', 5),
      'quarantine list',
      'quarantine list --device truck-1',
      'quarantine release --device truck-1 --id {kept}',
      delivered(1),
      '= sent totals.released',
      'quarantine drop --device truck-2',
      '= spool.quarantined spool.deadLetters',
      'quarantine drop --device truck-2 --yes',
      '= spool.quarantined spool.deadLetters metrics.gateway_quarantine_dropped_total',
      'quarantine release --device unlisted',
      'quarantine release --all --restamp',
      delivered(3),
      '= sent totals.quarantined totals.released totals.dead',
      noDifference,
      ({ folder }) => writeFile(join(folder, 'devices.csv'), 'device\ntruck-1\nunlisted\n'),
      delivered(4),
      'quarantine release --id gone',
      '= spool.quarantined',
      noDifference,
    ],
  },
  {
    title: 'Payloads that the service refuses, until its fault is corrected',
    world: threeRefused,
    steps: [
      'dead-letters',
      'dead-letters show {dead}',
      'dead-letters requeue --all',
      until(({ totals, spool }) => totals.dead === 6 && spool.deadLetters === 3),
      ({ sandbox }) => sandbox.setFaults({}),
      'dead-letters requeue --all --dry-run',
      'dead-letters requeue --device truck-2',
      delivered(2),
      'dead-letters export --to {folder}/dead.ndjson',
      'dead-letters export --to {folder}/dead.ndjson',
      'dead-letters edit {dead} --file - <<< {}',
      'dead-letters purge --reason Validation',
      '= spool.deadLetters',
      'dead-letters purge --reason Validation --yes',
      '= spool.deadLetters open.DEAD_LETTERS_PURGED open.DEAD_LETTERS',
      'dead-letters requeue --file {folder}/dead.ndjson',
      delivered(4),
      'dead-letters requeue --file {folder}/dead.ndjson',
      'dead-letters requeue --file {folder}/none.ndjson',
      'dead-letters requeue --file - <<< {"kind":"x"}',
      'dead-letters',
      '= sandbox.distinctPayloadIds sandbox.duplicatesAcrossBatches metrics.gateway_dead_letters_imported_total',
      '= metrics.gateway_dead_letters_purged_total{by="operator"} internals.conservation.payloads.difference',
    ],
  },
  {
    title: 'Messages that could not be mapped, until the config is corrected',
    world: foreignMessages,
    steps: [
      'dead-letters list --ids',
      'dead-letters show {dead}',
      'dead-letters remap --dry-run',
      'map --config {folder}/gateway.yaml --from-dead-letters --explain',
      ({ folder }) => correct(join(folder, 'gateway.yaml'), '{ path: lat }', '{ path: [lat, latitude] }'),
      'reload',
      'dead-letters requeue --stage mapping',
      delivered(1),
      'dead-letters list --ids',
      'dead-letters show {dead}',
      'dead-letters remap --json',
      // Also where the editor would fail: it is not started.
      'dead-letters edit {dead}',
      'dead-letters requeue ffffffffffffffffffffffffffffffff',
      'dead-letters purge ffffffffffffffffffffffffffffffff --yes',
      'dead-letters export ffffffffffffffffffffffffffffffff',
      '= spool.deadLetters',
      ({ gateway }) => gateway.stop('test'),
      'map --config {folder}/gateway.yaml --from-dead-letters',
    ],
  },
  {
    title: 'Readings that are lower than before, until the device is forgotten',
    world: () => startPipeline({ config: configText({ sources: counters }) }),
    steps: [
      reads(1, 500_000, 9000),
      reads(2, 12, 3),
      '= values totals.ignored',
      'devices forget truck-7 --signal OBD_LIFETIME_ODOMETER',
      reads(3, 12, 3),
      '= values',
      reads(4, 500_000, 3),
      '= values',
      'devices forget truck-7 --json',
      reads(5, 14, 4),
      '= values',
      'devices forget truck-8',
      'devices forget truck-7 --signal FUEL',
    ],
  },
  {
    title: 'A service that does not accept the signature',
    world: unauthorized,
    steps: [
      // The keys are read again once.
      (world) => world.until(() => world.sandbox.stats().requests === 2),
      'probe',
      '= sandbox.requests',
      'probe --json',
      ({ sandbox }) => sandbox.setFaults({}),
      'probe',
      delivered(1),
      '= open.ENDPOINT_UNAUTHORIZED',
    ],
  },
  {
    title: 'Devices that a person adds',
    world: withUsers,
    steps: [
      ({ folder }) => chmod(join(folder, 'devices.csv'), 0o664),
      (world) => world.publish('truck-9', messageOf(1)),
      'devices accept truck-8 --config {folder}/gateway.yaml',
      'devices accept truck-9 --asset TRK-9 --config {folder}/gateway.yaml',
      delivered(1),
      'devices show truck-9',
      'devices accept truck-9 --config {folder}/gateway.yaml',
      'cat devices.csv',
      'devices add truck-3 --asset TR-3 --model FMC650 --password --config {folder}/gateway.yaml <<< abc',
      ({ folder }) => modeOf(join(folder, 'devices.csv')),
      ({ folder }) => passwordOf(folder, 'truck-3', 'abc'),
      'devices add truck-3 --asset TR-4 --config {folder}/gateway.yaml',
      'devices add truck-3 --asset TR-4 --replace --config {folder}/gateway.yaml',
      'devices add truck-4 --zone Europe/Berln --config {folder}/gateway.yaml',
      'devices add truck-4 --zone Europe/Berlin --config {folder}/gateway.yaml',
      'devices add truck-5 --provider nobody --config {folder}/gateway.yaml',
      'cat devices.csv',
      ({ folder }) =>
        writeFile(join(folder, 'more.csv'), 'asset_id,device,operator\nTR-6,truck-6,OP1\nTR-7,truck-1,OP1\n'),
      'devices import {folder}/more.csv --config {folder}/gateway.yaml',
      'devices import {folder}/more.csv --replace --config {folder}/gateway.yaml',
      'cat devices.csv',
      ({ folder }) => writeFile(join(folder, 'more.csv'), 'device\ntruck-8\ntruck-8\n'),
      'devices import {folder}/more.csv --config {folder}/gateway.yaml',
      (world) => world.publish('truck-1', messageOf(2)),
      delivered(2),
      'devices forget truck-1 --ledger --config {folder}/gateway.yaml',
      'ledger --outcome delivered',
      'devices list --sort name',
      ({ gateway }) => gateway.stop('to change the table'),
      'devices add truck-8 --config {folder}/gateway.yaml',
    ],
  },
  {
    title: 'A file of users and their passwords',
    world: () => startPipeline(),
    steps: [
      'passwd {folder}/users a --cost 13 <<< one',
      'passwd {folder}/users b <<< keep',
      'passwd {folder}/users a <<< two',
      'passwd {folder}/users a --verify <<< one',
      'passwd {folder}/users a --verify <<< two',
      'passwd {folder}/users a --delete',
      'passwd {folder}/users a --verify <<< two',
      'passwd {folder}/users b --verify <<< keep',
      ({ folder }) => writeFile(join(folder, 'broken'), 'broken\n'),
      'passwd {folder}/broken a <<< one',
      'cat broken',
    ],
  },
  {
    title: 'A spool whose files are damaged',
    world: threeRefused,
    steps: [
      ({ gateway }) => gateway.stop('the disk fails'),
      ({ folder }) => rm(join(folder, 'spool/store/CURRENT')),
      'spool waiting --path {folder}/spool',
      'spool repair --path {folder}/spool',
      'spool repair --path {folder}/spool --json',
      'audit --path {folder}/spool',
      'spool repair --path {folder}/spool --yes --backup {folder}/spool/store',
      'spool repair --path {folder}/spool --yes --backup {folder}/copy',
      'spool waiting --path {folder}/spool',
      'spool repair --path {folder}/spool',
      'spool repair --path {folder}/spool --yes --purge',
      'audit --path {folder}/spool',
      'spool snapshot --to {folder}/snapshot --path {folder}/spool',
      'spool restore --from {folder}/snapshot --path {folder}/spool',
      'spool restore --from {folder}/snapshot --path {folder}/spool --yes',
      'spool restore --from {folder}/snapshot --path {folder}/other',
      'spool verify --path {folder}/other',
      'audit --path {folder}/other',
      // As a version before left it, or a repair.
      ({ folder }) =>
        rename(join(folder, 'spool/store'), join(folder, 'spool/store.damaged-2026-01-01T00-00-00')),
      async ({ folder }) => (await startPipeline({ folder, baseUrl: away })).gateway.stop('test'),
      'spool waiting --path {folder}/spool',
      'spool repair --path {folder}/spool',
      'spool repair --path {folder}/spool --yes',
      'spool waiting --path {folder}/spool',
      'spool waiting --path {folder}/nowhere',
      'dead-letters list --path {folder}/spool',
    ],
  },
  {
    title: 'The spool of a gateway that was stopped',
    world: threeRefused,
    steps: [
      'dead-letters requeue {dead} --dry-run',
      'dead-letters list --path {folder}/spool',
      ({ gateway }) => gateway.stop('the machine is replaced'),
      'spool verify --path {folder}/spool',
      'dead-letters list --ids --config {folder}/gateway.yaml',
      'dead-letters show {dead} --config {folder}/gateway.yaml --hex',
      'dead-letters export --path {folder}/spool --to {folder}/dead.ndjson',
      'ledger --config {folder}/gateway.yaml --device witness',
      'audit --path {folder}/spool',
      'dead-letters list --path {folder}/nowhere',
      'spool verify --path {folder}/nowhere',
      'spool salvage --path {folder}/spool --to {folder}/salvaged',
      'spool salvage --path {folder}/spool --to {folder}/salvaged',
    ],
  },
]

/** What differs from run to run. */
const varying: readonly (readonly [RegExp | string, string])[] = [
  [/\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC/g, 'TIME'],
  [/20[2-8]\d-\d\d-\d\dT[\d:.]+Z/g, 'TIME'],
  [/(damaged\/|replaced-)20\d\d-\d\d-\d\dT[\d-]+/g, '$1TIME'],
  [/("?(?:bytes|bytesNeeded|bytesFree|clockOffsetMs|createdAt)"?:? ?)-?\d+/g, '$1N'],
  [/; [\d.]+ GiB are free/g, '; SOME GiB are free'],
  [/\b17\d{11}\b/g, 'TIME'],
  [/tookMs [\d.]+/g, 'tookMs N'],
  [/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{32}/g, 'ID'],
  [/just now|\d+ (?:ms|s|min|h)(?: \d+ (?:min|s))? ago/g, 'AGO'],
  [/\bin \d+ min(?: \d+ s)?/g, 'in SOME TIME'],
  [/\d+ h \d+ min behind/g, 'SOME TIME behind'],
  [/\b\d+(?:\.\d+)? (?:ms|s|B|KiB)\b/g, 'AMOUNT'],
  [userInfo().username, 'USER'],
  // How many writes there were.
  [/^ +(totals|dedup window|mapping state|receipts) +\d+ .*\n/gm, ''],
  [/ {2,}/g, '  '],
]

const env = {
  AWS_ACCESS_KEY_ID: sandboxAccount.accessKeyId,
  AWS_SECRET_ACCESS_KEY: sandboxAccount.secret.reveal(),
}

const lists = {
  '{batch}': ['/batches', 'batches', 'batchId'],
  '{dead}': ['/dead-letters', 'deadLetters', 'id'],
  '{kept}': ['/quarantine?device=truck-1', 'messages', 'id'],
} as const

async function typed(world: Pipeline, line: string, ids: Map<string, string>): Promise<string> {
  const [command = '', stdin = ''] = line.split(' <<< ')
  const { ops, control } = world.gateway.addresses
  for (const [name, [path, list, id]] of Object.entries(lists)) {
    if (!command.includes(name)) continue
    const answer = await get(ops, path).catch(() => null)
    const [first] = (answer === null ? [] : JSON.parse(answer.text)[list]) as Record<string, string>[]
    if (first !== undefined) ids.set(name, first[id] ?? '')
  }
  const words = command.split(' ').map((word) => ids.get(word) ?? word.replace('{folder}', world.folder))
  const place = /^passwd |--(path|config) /.test(command) ? [] : ['--url', control]
  const { status, stdout, stderr } = await runCli([...words, ...place], {
    // Of a person without a daemon, who also tries what a terminal would carry out.
    env: { ...env, ...(place.length === 0 && { SUDO_USER: 'alice\u001b[2J' }) },
    stdin,
  })
  const said = (stdout + stderr)
    .replaceAll(world.folder, '{folder}')
    .replaceAll(encodeURIComponent(world.folder), '{folder}')
  return `$ ${line}\n${said}(exit status ${status})\n`
}

async function factsOf(world: Pipeline, names: readonly string[]): Promise<string> {
  const { text } = await get(world.gateway.addresses.ops, '/metrics')
  const metrics = Object.fromEntries(text.split('\n').map((line) => line.split(' ')))
  const open = Object.fromEntries(world.codes().map((code) => [code, true]))
  const facts = {
    ...world.status(),
    open,
    sandbox: world.sandbox.stats(),
    sent: sentTimes(world),
    values: sentValues(world),
    metrics,
  }
  const lines = names.map((name) => {
    const found = name.split('.').reduce<unknown>((value, key) => Object(value)[key], facts)
    return `= ${name} ${String(found)}\n`
  })
  return lines.join('')
}

test.each(stories)('the commands say what transcripts has: $title', async ({ title, world, steps }) => {
  const pipeline = await world()
  const texts: string[] = []
  const ids = new Map<string, string>()
  for (const step of steps) {
    if (typeof step !== 'string') {
      const said = await step(pipeline)
      if (typeof said === 'string') texts.push(`${said}\n`)
    } else if (step.startsWith('cat '))
      texts.push(`$ ${step}\n${await readFile(join(pipeline.folder, step.slice(4)), 'utf8')}`)
    else if (step.startsWith('= ')) texts.push(await factsOf(pipeline, step.slice(2).split(' ')))
    else texts.push(await typed(pipeline, step, ids))
  }
  let text = `# ${title}\n\n${texts.join('\n')}`
  for (const [pattern, word] of varying) text = text.replaceAll(pattern, word)
  await expect(text).toMatchFileSnapshot(
    `transcripts/${title.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-')}.md`,
  )
})
