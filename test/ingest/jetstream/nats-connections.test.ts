// Why a bridge to NATS has no connection that is of use: certificates, and JetStream that is not enabled. In
// words, with what to do, as a condition and in `check --connect`.

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { checkJetStream } from '../../../src/ingest/jetstream/jetstream-check.ts'
import { jetstreamBridgeSchema } from '../../../src/ingest/jetstream/jetstream-config.ts'
import { createProcess, spawnEngine } from '../../engines/message-engine.ts'
import { hasNats, machineProgram } from '../../engines/nats-engine.ts'
import { createAuthority, type Certificate } from '../../support/certificates.ts'
import { eventually } from '../../support/eventually.ts'
import { newFolder } from '../../support/folders.ts'
import { answers, freePort } from '../../support/mosquitto.ts'
import { openMember } from '../../support/nats-world.ts'

/** A node without MQTT. */
async function startNode(lines: (folder: string) => readonly string[]): Promise<number> {
  const folder = await newFolder()
  const port = await freePort()
  const config = join(folder, 'nats.conf')
  await writeFile(config, [`host: 127.0.0.1`, `port: ${port}`, ...lines(folder)].join('\n'))
  const node = createProcess('nats', () => spawnEngine(machineProgram, ['-c', config]))
  onTestFinished(() => node.end('SIGKILL'))
  node.start()
  await Promise.race([answers(port), node.failure()])
  return port
}

async function startTlsNode({ cert, key }: Certificate, more = ''): Promise<number> {
  const folder = await newFolder()
  await writeFile(join(folder, 'node.pem'), cert)
  await writeFile(join(folder, 'node.key'), key)
  const tls = `cert_file: "${folder}/node.pem", key_file: "${folder}/node.key"${more.replace('FOLDER', folder)}`
  await writeFile(join(folder, 'ca.pem'), authority.ca)
  return startNode((own) => [`jetstream { store_dir: "${own}/data" }`, `tls { ${tls} }`])
}

/** What the bridge says of it, and `check --connect`. */
async function faultsAt(
  port: number,
  more: Record<string, unknown> = {},
  url = `nats+tls://127.0.0.1:${port}`,
): Promise<{ reason: string; said: readonly string[] }> {
  await using member = await openMember({ urls: [url] }, more)
  await eventually(() => member.events('message_source_lost').length > 0)
  const { reason, detail, act } = member.events('message_source_lost')[0]!
  const config = jetstreamBridgeSchema.parse({
    name: 'nats',
    url,
    topics: ['t/{device}'],
    durables: { prefix: 'gw', partitions: 4 },
    ...more,
  })
  const { state, why, act: todo } = await checkJetStream(config, new AbortController().signal)
  expect(state).toBe('failed')
  return { reason: String(reason), said: [`${String(detail)} ${String(act)}`, `${why} ${todo}`] }
}

const authority = createAuthority()
const dayMs = 86_400_000
const ca = { tls: { ca: authority.ca } }

/** The condition and `check` say the same. */
function fault(reason: RegExp, words: RegExp) {
  const said = expect.stringMatching(words) as string
  return { reason: expect.stringMatching(reason) as string, said: [said, said] }
}

describe.skipIf(!hasNats)('a connection to NATS that cannot be used', { timeout: 60_000 }, () => {
  test.each([
    ['unknown authority', {}, {}, /not signed by a public authority.* set `tls\.ca`/],
    ['another authority', {}, { tls: { ca: createAuthority('Other').ca } }, /not signed by the authority/],
    ['another name', { names: ['nats.example.com'] }, ca, /for "nats\.example\.com".*`tls\.server_name`/],
    ['expired', { until: new Date(Date.now() - dayMs / 2) }, ca, /has expired .*timedatectl/],
    ['not valid yet', { from: new Date(Date.now() + dayMs / 2) }, ca, /not valid yet/],
  ])('certificate: %s', async (_, issued, options, words) => {
    const port = await startTlsNode(authority.issue(issued))
    expect(await faultsAt(port, options)).toEqual(fault(/^tls_failed$/, words))
  })

  test('NATS asks for a certificate of the gateway', async () => {
    const port = await startTlsNode(authority.issue(), ', ca_file: "FOLDER/ca.pem", verify: true')
    expect(await faultsAt(port, ca)).toEqual(
      fault(/^(tls_failed|connection_lost|unreachable)$/, /`tls\.cert` and `tls\.key`/),
    )
  })

  test('NATS requires TLS, and the bridge has none', async () => {
    const port = await startTlsNode(authority.issue())
    expect(await faultsAt(port, {}, `nats://127.0.0.1:${port}`)).toEqual(
      fault(/^(tls_failed)$/, /requires TLS.*nats\+tls:/),
    )
  })

  test('JetStream is not enabled at the server', async () => {
    const port = await startNode(() => [])
    expect(await faultsAt(port, {}, `nats://127.0.0.1:${port}`)).toEqual(
      fault(/^(no_jetstream)$/, /jetstream \{ store_dir: .*accounts \{ .*jetstream: enabled/),
    )
  })

  test('JetStream is not enabled for the account', async () => {
    const port = await startNode((folder) => [
      `jetstream { store_dir: "${folder}/data" }`,
      'accounts { A { users: [{ user: gw, password: right }] }, B { jetstream: enabled, users: [{ user: b, password: b }] } }',
    ])
    const url = `nats://127.0.0.1:${port}`
    expect(await faultsAt(port, { username: 'gw', password: 'right' }, url)).toEqual(
      fault(/^(no_jetstream)$/, /in this account.*jetstream: enabled/),
    )
  })
})
