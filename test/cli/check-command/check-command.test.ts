import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { createServer as createTcpServer } from 'node:net'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { Secret } from '../../../src/std/secret.ts'
import { createAuthority } from '../../support/certificates.ts'
import { openScriptedBroker } from '../../support/scripted-broker.ts'
import { runCli } from '../../support/cli-world.ts'
import { serveHttp } from '../../support/http-server.ts'
import { newFolder } from '../../support/folders.ts'
import { startConnectProxy } from '../../support/connect-proxy.ts'
import { startSandbox } from '../../support/pipeline-world.ts'
import { startTlsService } from '../../support/tls-service.ts'
import { mountSmallDisk } from '../../crash/small-disk.ts'

type Finding = { name: string; ok: boolean; what: string; act?: string; providers: string[] }

async function configWith(delivery: string, spool = './spool') {
  const folder = await newFolder()
  const path = join(folder, 'gateway.yaml')
  await writeFile(
    path,
    `ingest: { broker: { access: { anonymous: true } } }
sources:
  - name: trucks
    topic: telemetry/v1/{device}
    map: { latitude: { path: lat }, longitude: { path: lon } }
spool: { path: ${spool}, min_free_bytes: 1B }
delivery: { ${delivery} }
`,
  )
  return { folder, path }
}

/** Answers with this date, or with none. */
const service = (date: () => Date | null) =>
  serveHttp((_, response) => {
    const served = date()
    if (served) response.setHeader('date', served.toUTCString())
    else response.sendDate = false
    response.writeHead(404).end()
  })

/** Answers each batch with a status, and accepts nothing else of it. */
const answering = (statusOf: (request: IncomingMessage) => number) =>
  serveHttp((request, response) => {
    const lists = { accepted: [], failed: [], summary: { total: 0, accepted: 0, failed: 0 } }
    request.resume()
    response.writeHead(statusOf(request)).end(JSON.stringify({ requestId: 'r', responseCode: 200, ...lists }))
  })

const keys = { AWS_ACCESS_KEY_ID: 'AKIA1', AWS_SECRET_ACCESS_KEY: 'hunter2-very-secret' }

async function findings(path: string, env: NodeJS.ProcessEnv = keys) {
  const { status, stdout, stderr } = await runCli(['check', '--json', '--connect', '--config', path], { env })
  expect(stderr).toBe('')
  const { connect, ok } = JSON.parse(stdout) as { connect: Finding[]; ok: boolean }
  expect(ok).toBe(status === 0)
  return { status, stdout, connect, found: new Map(connect.map((finding) => [finding.name, finding])) }
}

describe('check --connect', () => {
  test('tries each bridge with --connect, and takes nothing there', async () => {
    await using broker = await openScriptedBroker({ granted: ([filter]) => [filter === 'low/+' ? 0 : 1] })
    const { url } = await startSandbox()
    const config = await configWith(`base_url: "${url}"`)
    const bridge = (name: string, port: number, topic: string) =>
      `{ name: ${name}, url: "mqtt://127.0.0.1:${port}", topics: ["${topic}"], client_id: ${name} }`
    const bridges = [bridge('depot', broker.port, 'telemetry/v1/+'), bridge('yard', broker.port, 'low/+')]
    const text = (await readFile(config.path, 'utf8')).replace('telemetry/v1/{device}', '+/v1/{device}')
    const write = (all: readonly string[]) =>
      writeFile(config.path, text.replace('ingest: {', `ingest: { bridges: [${all.join()}],`))
    await write(bridges)
    const { status, connect, stdout } = await findings(config.path)
    expect(status).toBe(0)
    expect(connect.filter(({ name }) => name === 'bridge')).toMatchObject([
      { ok: true, what: expect.stringMatching(/^depot: .* grants QoS 1 for telemetry/) as string },
      {
        ok: true,
        what: expect.stringMatching(/^yard: .*only QoS 0/) as string,
        act: expect.anything() as string,
      },
    ])
    expect(JSON.parse(stdout)).toMatchObject({
      config: { bridges: [`depot to mqtt://127.0.0.1:${broker.port}: telemetry/v1/+`, expect.anything()] },
    })
    expect(broker.connections.map(({ connect: { clientId } }) => clientId)).not.toContain('depot')
    await write([...bridges, bridge('gone', 1, 'telemetry/v1/+')])
    const { stdout: lines, status: failed } = await runCli(['check', '--connect', '--config', config.path], {
      env: keys,
    })
    expect(failed).toBe(1)
    expect(lines).toMatch(/failed +bridge +gone: mqtt:\/\/127.0.0.1:1 cannot be used\. Nothing listens/)
  })

  test('checks DNS, connection, clock, credentials and spool', async () => {
    const url = await service(() => new Date())
    const config = await configWith(`base_url: "${url}"`)
    const { status, stdout, found } = await findings(config.path)
    expect([...found.values()].filter(({ ok }) => !ok)).toEqual([])
    expect([...found.keys()]).toEqual(['dns', 'connection', 'clock', 'proxy', 'credentials', 'spool'])
    expect(found.get('credentials')?.what).toContain('AKIA1')
    expect(stdout).not.toContain('hunter2')
    expect(status).toBe(0)
  })

  test.each([
    [3_600_000, false],
    [-3_600_000, false],
    [60_000, true],
  ])('a clock that is %i ms off is accepted: %s', async (offsetMs, ok) => {
    const url = await service(() => new Date(Date.now() + offsetMs))
    const config = await configWith(`base_url: "${url}"`)
    const { found } = await findings(config.path)
    expect(found.get('clock')).toMatchObject({ ok })
    expect(found.get('clock')?.what).toContain(offsetMs > 0 ? 'behind' : 'ahead')
  })

  describe('with delivery.compress', () => {
    const secret = 'hunter2-very-secret'
    const account = { accessKeyId: 'AKIA1', secret: new Secret(secret) }
    const compress = (url: string) => configWith(`base_url: "${url}", compress: gzip`)

    test('says that the service accepts gzip', async () => {
      const { url } = await startSandbox({ accounts: [account] })
      const config = await compress(url)
      const { status, found } = await findings(config.path)
      expect(found.get('compression')).toMatchObject({
        ok: true,
        what: expect.stringMatching(/accepts requests/),
      })
      expect(status).toBe(0)
    })

    test('fails where the service accepts the same batch only without compression', async () => {
      const url = await answering(({ headers }) => (headers['content-encoding'] === 'gzip' ? 415 : 200))
      const config = await compress(url)
      const { status, found } = await findings(config.path)
      expect(found.get('compression')).toMatchObject({
        ok: false,
        what: 'The service does not accept requests compressed with gzip.',
        why: expect.stringMatching(/415/),
        act: expect.stringMatching(/delivery.compress/),
      })
      expect(status).toBe(1)
    })

    test('is no failure where the service refuses an empty batch in any case', async () => {
      const url = await answering(() => 403)
      const config = await compress(url)
      const { found } = await findings(config.path)
      expect(found.get('compression')).toMatchObject({
        ok: true,
        what: expect.stringMatching(/not known.*403.*403/),
      })
    })
  })

  test('a service that sends no Date is no failure', async () => {
    const url = await service(() => null)
    const config = await configWith(`base_url: "${url}"`)
    expect((await findings(config.path)).found.get('clock')).toMatchObject({ ok: true })
  })

  test('https to a plain TCP server fails the TLS check', async () => {
    const server = createTcpServer((socket) => socket.on('error', () => undefined).end('hello\n'))
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const address = server.address()
    const port = typeof address === 'object' && address ? address.port : 0
    const config = await configWith(`base_url: "https://127.0.0.1:${port}"`)
    const { found } = await findings(config.path)
    expect(found.get('tls')).toMatchObject({ ok: false })
    expect(found.has('clock')).toBe(false)
    server.close()
  })

  test('providers with the same connection share its check; credentials are checked for each', async () => {
    const url = await service(() => new Date())
    const list =
      'providers: [{ name: north, provider_key: A }, { name: south, provider_key: B }, ' +
      '{ name: west, base_url: "http://127.0.0.1:1" }]'
    const config = await configWith(`base_url: "${url}", ${list} }\ndevices: { file: fleet.csv`)
    await writeFile(join(config.folder, 'fleet.csv'), 'device,provider\na,north\n')
    const { status, connect } = await findings(config.path)
    expect(status).toBe(1)
    expect(connect.map(({ name, ok, providers }) => [name, ok, providers.join('+')])).toEqual([
      ['dns', true, 'north+south'],
      ['connection', true, 'north+south'],
      ['clock', true, 'north+south'],
      ['proxy', true, 'north+south'],
      ['dns', true, 'west'],
      ['connection', false, 'west'],
      ['proxy', true, 'west'],
      ['credentials', true, 'north'],
      ['credentials', true, 'south'],
      ['credentials', true, 'west'],
      ['spool', true, ''],
    ])
    const { stdout } = await runCli(['check', '--connect', '--config', config.path], { env: keys })
    expect(stdout).toContain(`to ${url}, provider north, X-Provider-Key A, credentials: environment`)
    expect(stdout).toMatch(/^ {2}ok {7}dns {10}north, south: /m)
    expect(stdout).toMatch(/^ {2}failed {3}connection {3}west: /m)
  })

  test('uses the proxy and reports its refusal', async () => {
    const url = await service(() => new Date())
    const proxy = await startConnectProxy()
    const config = await configWith(`base_url: "${url}", proxy: "${proxy.url}"`)
    const fine = await findings(config.path)
    expect(fine.connect.map(({ name, ok }) => [name, ok])).toEqual([
      ['proxy', true],
      ['clock', true],
      ['credentials', true],
      ['spool', true],
    ])
    const closed = await startConnectProxy({ mood: 407 })
    const other = await configWith(`base_url: "${url}", proxy: "${closed.url}"`)
    expect((await findings(other.path)).found.get('proxy')).toMatchObject({
      ok: false,
      why: expect.stringContaining('The proxy requires a user name and a password'),
      act: expect.stringContaining('delivery.proxy_auth'),
    })
  })

  test('checks authority, name, dates and client certificate as submissions do', async () => {
    const authority = createAuthority()
    const clients = createAuthority('Clients')
    const mine = clients.issue({ names: ['depot-7'] })
    const server = await startTlsService({
      ...authority.issue(),
      clientCa: clients.ca,
      date: () => new Date(),
    })
    const tls = 'tls: { ca: "${file:ca.pem}", cert: "${file:cert.pem}", key: "${file:key.pem}" }'
    const config = await configWith(`base_url: "${server.url}", ${tls}`)
    await writeFile(join(config.folder, 'ca.pem'), authority.ca)
    await writeFile(join(config.folder, 'cert.pem'), mine.cert)
    await writeFile(join(config.folder, 'key.pem'), mine.key)
    const { status, found } = await findings(config.path)
    expect([...found].filter(([, { ok }]) => !ok)).toEqual([])
    expect([...found.keys()]).toContain('tls')
    expect(status).toBe(0)
    const other = await configWith(`base_url: "${server.url}"`)
    expect((await findings(other.path)).found.get('tls')).toMatchObject({
      ok: false,
      why: expect.stringMatching(/no intermediate one, and it is not signed by a public authority/),
      act: expect.stringContaining('delivery.tls.ca'),
    })
  })

  test('a spool on a disk without a free inode fails (skipped where nothing may be mounted)', async ({
    skip,
  }) => {
    const disk = await mountSmallDisk(8, { inodes: 200 })
    if (disk === null) {
      skip('nothing may be mounted here')
      return
    }
    onTestFinished(() => disk[Symbol.asyncDispose]())
    const config = await configWith(
      'base_url: "http://127.0.0.1:1"',
      disk.path + '/spool, allow_in_memory: true',
    )
    expect((await findings(config.path)).found.get('spool')).toMatchObject({ ok: true })
    disk.fillFiles()
    expect((await findings(config.path)).found.get('spool')).toMatchObject({
      ok: false,
      what: expect.stringMatching(/has only 0 free inodes/),
      act: expect.stringContaining('df -i'),
    })
  })

  test.skipIf(process.getuid?.() === 0)('a spool directory without write access fails', async () => {
    const config = await configWith('base_url: "http://127.0.0.1:1"', './closed/spool')
    await mkdir(join(config.folder, 'closed'))
    await chmod(join(config.folder, 'closed'), 0o500)
    expect((await findings(config.path)).found.get('spool')).toMatchObject({ ok: false })
  })
})
