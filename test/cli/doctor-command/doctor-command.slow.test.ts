// `doctor` against a real sandbox, real sockets, real files and a real daemon; systemctl is a script.

import { chmod, mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { once } from 'node:events'
import { createServer as createTcpServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { accountIn } from '../../../src/cli/check-command/account-number.ts'
import { sandboxAccount } from '../../../src/sandbox/sandbox.ts'
import { createAuthority } from '../../support/certificates.ts'
import { runCli } from '../../support/cli-world.ts'
import { serveHttp } from '../../support/http-server.ts'
import { newFolder } from '../../support/folders.ts'
import { startPipeline, startSandbox } from '../../support/pipeline-world.ts'
import { startSpawnedDaemon, writeDaemonConfig } from '../../support/spawned-daemon.ts'
import { startTlsService } from '../../support/tls-service.ts'

type Check = { name: string; state: string; what: string; why?: string; act?: string; providers?: string[] }

const keys = {
  AWS_ACCESS_KEY_ID: sandboxAccount.accessKeyId,
  AWS_SECRET_ACCESS_KEY: sandboxAccount.secret.reveal(),
}

type World = { delivery?: string; listen?: string; more?: string; folder?: string }

async function writeConfig(baseUrl: string, { delivery = '', listen, more = '', folder }: World = {}) {
  const place = folder ?? (await newFolder())
  const path = join(place, 'gateway.yaml')
  await writeFile(
    path,
    `ingest: { broker: { listeners: [{ url: "${listen ?? 'mqtt://127.0.0.1:0'}" }], access: { anonymous: true } } }
sources: [{ name: a, topic: "a/{device}", map: { latitude: { path: x }, longitude: { path: y } } }]
spool: { path: ./spool, min_free_bytes: 1B }
delivery: { base_url: "${baseUrl}"${delivery} }
ops: { listen: "127.0.0.1:0" }
${more}`,
    { mode: 0o600 },
  )
  return { path, folder: place }
}

async function doctor(path: string, more: readonly string[] = [], env: NodeJS.ProcessEnv = keys) {
  const { status, stdout, stderr } = await runCli(['doctor', '--json', '--config', path, ...more], { env })
  expect(stderr).toBe('')
  const { ok, checks } = JSON.parse(stdout) as { ok: boolean; checks: Check[] }
  expect(ok).toBe(status === 0)
  expect(ok).toBe(checks.every(({ state }) => state !== 'failed'))
  const of = (name: string) => checks.filter((one) => one.name === name)
  return { status, stdout, checks, of, failed: checks.filter(({ state }) => state === 'failed') }
}

/** Answers each POST with a status, and counts them. */
async function answering(status: number, text = '{"message":"no"}') {
  const bodies: string[] = []
  const url = await serveHttp((request, response) => {
    let body = ''
    request.on('data', (chunk: Buffer) => (body += chunk.toString()))
    request.on('end', () => {
      if (request.method === 'POST') bodies.push(body)
      response.writeHead(status).end(text)
    })
  })
  return { url, bodies }
}

/** PATH with a systemctl that prints these properties. */
async function systemctl(properties: Record<string, string>) {
  const folder = await newFolder()
  const lines = Object.entries(properties).map(([key, value]) => `echo '${key}=${value}'`)
  await writeFile(join(folder, 'systemctl'), `#!/bin/sh\n${lines.join('\n')}\n`)
  await chmod(join(folder, 'systemctl'), 0o755)
  return { ...keys, PATH: `${folder}:/usr/bin:/bin` }
}

const unit = {
  LoadState: 'loaded',
  ActiveState: 'active',
  SubState: 'running',
  Result: 'success',
  UnitFileState: 'enabled',
  NeedDaemonReload: 'no',
  NRestarts: '0',
  LimitNOFILE: '65536',
  TimeoutStopUSec: '45s',
}

describe('doctor', () => {
  test('finds nothing wrong where nothing is, and sends no signed request by itself', async () => {
    const { sandbox, url } = await startSandbox()
    const { path, folder } = await writeConfig(url)
    const { status, failed, of, stdout } = await doctor(path)
    expect(failed).toEqual([])
    expect(status).toBe(0)
    for (const name of ['config', 'dns', 'connection', 'clock', 'proxy', 'credentials', 'signature', 'fsync'])
      expect(of(name)[0], name).toMatchObject({ state: 'ok' })
    for (const name of ['spool', 'listeners', 'file modes'])
      expect(of(name)[0], name).toMatchObject({ state: 'ok' })
    expect(of('daemon')).toMatchObject([{ state: 'skipped' }])
    expect(of('service')).toMatchObject([{ state: 'skipped' }])
    expect(stdout).not.toContain(sandboxAccount.secret.reveal())
    expect(sandbox.stats().byStatus['400'] ?? 0).toBe(0)
    expect(await readdir(folder)).toEqual(['gateway.yaml'])
  })

  test('an expired certificate of a listener fails, and check names it', async () => {
    const { url } = await startSandbox()
    const { path, folder } = await writeConfig(url)
    const until = new Date(Date.now() - 86_400_000)
    const { cert, key } = createAuthority().issue({ from: new Date(until.getTime() - 86_400_000), until })
    await writeFile(join(folder, 'cert.pem'), cert)
    await writeFile(join(folder, 'key.pem'), key, { mode: 0o600 })
    const tls = 'url: "mqtts://127.0.0.1:0", tls: { cert: "${file:cert.pem}", key: "${file:key.pem}" }'
    const text = await readFile(path, 'utf8')
    await writeFile(path, text.replace('url: "mqtt://127.0.0.1:0"', tls))
    const { status, of } = await doctor(path)
    expect(status).toBe(1)
    const what = expect.stringMatching(/^The certificate of the listener mqtts:.* has expired at 2/) as string
    expect(of('certificate')).toMatchObject([{ state: 'failed', what, act: expect.stringMatching(/Renew/) }])
    const check = await runCli(['check', '--json', '--config', path], { env: keys })
    expect(check.status).toBe(0)
    expect(JSON.parse(check.stdout)).toMatchObject({ ok: true, warnings: [{ what }] })
  })

  test('prints one line for each check, the cure in it, and a summary', async () => {
    const { path } = await writeConfig('http://127.0.0.1:1')
    const { status, stdout } = await runCli(['doctor', '--config', path], { env: {} })
    expect(status).toBe(1)
    const lines = stdout.trimEnd().split('\n')
    for (const line of lines.slice(0, -2)) expect(line).toMatch(/^(ok|warning|failed|skipped) +\S/)
    expect(stdout).toMatch(/^failed +connection .*Nothing listens on .*base_url/m)
    expect(stdout).toMatch(/^failed +credentials .*AWS_ACCESS_KEY_ID/m)
    expect(lines.at(-1)).toMatch(/^\d+ checks: 2 failed, /)
  })

  test('an invalid config is one failure with all its problems; machine checks still run', async () => {
    const { path } = await writeConfig('http://127.0.0.1:1', { delivery: ', max_in_flight: 0, timout: 5s' })
    const { status, of, failed } = await doctor(path)
    expect([status, failed.length]).toEqual([1, 1])
    expect(failed[0]?.why).toMatch(/max_in_flight must be 1 to 64[\s\S]*unknown option "timout"/)
    expect(of('kernel clock')).toHaveLength(1)
    expect(of('systemd')).toHaveLength(1)
    expect((await runCli(['doctor', '--config', path])).stdout).toMatch(/^failed +config .*timout/m)
  })

  test('the chain of the certificate is shown', async () => {
    const authority = createAuthority('Depot Root')
    const service = await startTlsService(authority.issue())
    const more = ', tls: { ca: "${file:ca.pem}" }'
    const { path, folder } = await writeConfig(`https://localhost:${service.port}`, { delivery: more })
    await writeFile(join(folder, 'ca.pem'), authority.ca)
    const { of } = await doctor(path)
    expect(of('tls')).toMatchObject([{ state: 'ok', what: expect.stringMatching(/Chain: .*Depot Root/) }])
  })

  test('a session token is part of the own signature check', async () => {
    const { url } = await startSandbox()
    const { path } = await writeConfig(url)
    const { of } = await doctor(path, [], { ...keys, AWS_SESSION_TOKEN: 'token' })
    expect(of('signature')).toMatchObject([{ state: 'ok' }])
    expect(of('credentials')[0]?.what).toContain('with a session token')
  })
})

describe('doctor --signed-request', () => {
  test('400 of the service is what the specification demands, and proves only so much', async () => {
    const { sandbox, url } = await startSandbox()
    const { path } = await writeConfig(url)
    const { of, status } = await doctor(path, ['--signed-request'])
    expect(of('service')).toMatchObject([{ state: 'ok', what: expect.stringContaining('400') }])
    expect(of('service')[0]?.why).toContain('only if the service authenticates before it validates')
    expect(status).toBe(0)
    expect(sandbox.stats().distinctPayloadIds).toBe(0)
  })

  test('the request is a batch without batchId and payloads', async () => {
    const server = await answering(400)
    const { path } = await writeConfig(server.url)
    await doctor(path, ['--signed-request'])
    expect(server.bodies).toEqual(['{"data":[]}'])
  })

  test.each([
    [403, 'failed', /account.*firewall/],
    [401, 'failed', /account.*firewall/],
    [404, 'failed', /no ingestion API at delivery\.base_url/],
    [302, 'failed', /no ingestion API at delivery\.base_url/],
    [500, 'failed', /authenticates before it validates/],
    [413, 'warning', /authenticates before it validates/],
    [200, 'warning', /authenticates before it validates/],
  ])('%d of the service is %s', async (answer, state, why) => {
    const server = await answering(answer)
    const { path } = await writeConfig(server.url)
    const { of, status } = await doctor(path, ['--signed-request'])
    expect(of('service')).toMatchObject([{ state, why: expect.stringMatching(why), providers: ['default'] }])
    expect(of('service')[0]?.what).toContain(String(answer))
    expect(status).toBe(state === 'failed' ? 1 : 0)
  })

  test('keys of another account fail with 403, while the own check verifies them', async () => {
    const { url } = await startSandbox()
    const { path } = await writeConfig(url)
    const env = { AWS_ACCESS_KEY_ID: 'AKIAOTHER', AWS_SECRET_ACCESS_KEY: 'other-secret' }
    const { of } = await doctor(path, ['--signed-request'], env)
    expect(of('signature')).toMatchObject([{ state: 'ok' }])
    expect(of('service')).toMatchObject([{ state: 'failed', what: expect.stringContaining('403') }])
  })
})

describe('the machine', () => {
  test('a port that another process has fails, with the command that shows it', async () => {
    const taken = createTcpServer()
    taken.listen(0, '127.0.0.1')
    await once(taken, 'listening')
    const { port } = taken.address() as AddressInfo
    const { path } = await writeConfig('http://127.0.0.1:1', { listen: `mqtt://127.0.0.1:${port}` })
    const { of } = await doctor(path)
    taken.close()
    const found = of('listeners').find(({ state }) => state === 'failed')
    expect(found).toMatchObject({
      what: expect.stringContaining(`:${port}`),
      act: expect.stringContaining('ss -ltnp'),
    })
  })

  test('a config, a secret and a spool that others may open fail, each with its chmod', async () => {
    const delivery = ', credentials: { source: file, path: keys.json }'
    const { path, folder } = await writeConfig('http://127.0.0.1:1', { delivery })
    await writeFile(join(folder, 'keys.json'), '{"accessKeyId":"A","secretAccessKey":"b"}', { mode: 0o644 })
    await chmod(join(folder, 'keys.json'), 0o644)
    await mkdir(join(folder, 'spool'))
    await chmod(join(folder, 'spool'), 0o755)
    await chmod(path, 0o666)
    const cures = (await doctor(path)).of('file modes').map(({ state, act }) => `${state} ${act}`)
    expect(cures).toEqual([
      expect.stringMatching(/^failed .*chmod go-w .*gateway\.yaml/),
      expect.stringMatching(/^failed .*chmod 600 .*keys\.json/),
      expect.stringMatching(/^failed .*chmod 700 .*spool/),
    ])
  })

  test('the systemd unit is compared with the config', async () => {
    const { path } = await writeConfig('http://127.0.0.1:1')
    const good = await doctor(path, [], await systemctl(unit))
    expect(good.of('systemd')).toMatchObject([{ state: 'ok' }])
    const broken = { ActiveState: 'failed', Result: 'exit-code', UnitFileState: 'disabled', NRestarts: '7' }
    const limits = { LimitNOFILE: '1024', TimeoutStopUSec: '20s', NeedDaemonReload: 'yes' }
    const bad = await doctor(path, [], await systemctl({ ...unit, ...broken, ...limits }))
    expect(bad.of('systemd').map(({ state, act }) => `${state} ${act}`)).toEqual([
      expect.stringMatching(/^failed .*journalctl/),
      expect.stringMatching(/^warning .*systemctl enable/),
      expect.stringMatching(/^warning .*journalctl/),
      expect.stringMatching(/^warning .*daemon-reload/),
      expect.stringMatching(/^warning Set LimitNOFILE=11\d{3} with/),
      expect.stringMatching(/^warning .*TimeoutStopSec/),
    ])
    const before = await runCli(
      [
        'init',
        '--to',
        join(await newFolder(), 'etc'),
        '--service',
        'http://127.0.0.1:1',
        '--spool',
        await newFolder(),
      ],
      { env: await systemctl({ ...unit, ...broken }) },
    )
    expect(before.stdout).toMatch(
      /ok +systemd +The unit telemetry-gateway.service can start with this config/,
    )
    const none = await doctor(path, [], { ...keys, PATH: await newFolder() })
    expect(none.of('systemd')).toMatchObject([{ state: 'skipped' }])
    const other = await doctor(path, [], await systemctl({ LoadState: 'not-found' }))
    expect(other.of('systemd')).toMatchObject([{ state: 'skipped' }])
  })

  test.each([
    ['ASIAQNZGKIQY56JQ7WML', '029608264753'],
    ['AKIAIOSFODNN7EXAMPLE', null],
    ['SANDBOXACCOUNT', null],
  ])('the access key id %s names the account %s', (id, account) => {
    expect(accountIn(id)).toBe(account)
  })
})

describe('with a running daemon', () => {
  test('asks it, connects to its listeners and reads what it wrote to the disk', async () => {
    const { url } = await startSandbox()
    const folder = await newFolder()
    const config = await writeDaemonConfig(folder, url)
    const daemon = await startSpawnedDaemon(config)
    const { of, failed } = await doctor(config)
    expect(failed).toEqual([])
    expect(of('daemon')[0]?.what).toMatch(/^The daemon runs \(pid \d+\): \w+/)
    expect(of('listeners')[0]?.what).toMatch(/^mqtt:\/\/127\.0\.0\.1:\d+ accepts connections/)
    // Too young for a rate.
    expect(of('write wear')).toMatchObject([
      { state: 'skipped', what: expect.stringMatching(/written for 0 messages/) },
    ])
    await daemon.kill()
  })
})

test('a daemon of version 0.1.0, which has no verdict, is named as one of another version', async () => {
  const { url } = await startSandbox()
  const { path } = await writeConfig(url)
  const daemon = await answering(200, '{"version":"0.1.0","pid":1497,"ready":true}')
  const text = await readFile(path, 'utf8')
  await writeFile(
    path,
    text.replace('ops: { listen: "127.0.0.1:0" }', `ops: { listen: "${new URL(daemon.url).host}" }`),
  )
  const { of } = await doctor(path)
  expect(of('daemon')).toMatchObject([
    { state: 'skipped', what: expect.stringContaining('pid 1497, version 0.1.0') },
  ])
})

describe('write wear', () => {
  test('is bytes per message, and what that is in a year', async () => {
    const { checkWear } = await import('../../../src/cli/doctor-command/disk-checks.ts')
    const pipeline = await startPipeline()
    const status = pipeline.status()
    const processes = await newFolder()
    await mkdir(join(processes, '77'))
    await writeFile(
      join(processes, '77', 'io'),
      'rchar: 1\nwrite_bytes: 4000000000\ncancelled_write_bytes: 1000000000\n',
    )
    const day = 86_400_000
    const own = {
      ...status,
      pid: 77,
      startedAt: new Date(Date.parse(status.now) - day).toISOString(),
      totals: { ...status.totals, acked: 1_000_000 },
    }
    expect(await checkWear({ status: own, isLocal: true }, processes)).toMatchObject({
      state: 'ok',
      what: expect.stringMatching(/3000 bytes per message\. At this rate 1\.1 TB a year/),
    })
    await writeFile(join(processes, '77', 'io'), 'write_bytes: 400000000000\ncancelled_write_bytes: 0\n')
    expect(await checkWear({ status: own, isLocal: true }, processes)).toMatchObject({
      state: 'warning',
      act: expect.stringContaining('TBW'),
    })
    expect(await checkWear({ status: own, isLocal: true }, await newFolder())).toMatchObject({
      state: 'skipped',
    })
    expect(await checkWear(null)).toMatchObject({ state: 'skipped' })
  })
})
