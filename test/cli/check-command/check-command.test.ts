import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { IncomingMessage } from 'node:http'
import { createServer as createTcpServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { Secret } from '../../../src/std/secret.ts'
import { createAuthority } from '../../support/certificates.ts'
import { openScriptedBroker } from '../../support/scripted-broker.ts'
import { runCli } from '../../support/cli-world.ts'
import { startConnectProxy } from '../../support/connect-proxy.ts'
import { startSandbox } from '../../support/pipeline-world.ts'
import { startTlsService } from '../../support/tls-service.ts'
import { mountSmallDisk } from '../../crash/small-disk.ts'

type Finding = { name: string; ok: boolean; what: string; act?: string; providers: string[] }

async function configWith(delivery: string, spool = './spool') {
  const folder = await mkdtemp(join(tmpdir(), 'check-'))
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
  return { folder, path, [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }) }
}

async function service(date: () => Date | null) {
  const server = createServer((_, response) => {
    const served = date()
    if (served) response.setHeader('date', served.toUTCString())
    else response.sendDate = false
    response.writeHead(404).end()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  return {
    url: `http://127.0.0.1:${typeof address === 'object' && address ? address.port : 0}`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

/** Answers each batch with a status, and accepts nothing else of it. */
async function answering(statusOf: (request: IncomingMessage) => number) {
  const lists = { accepted: [], failed: [], summary: { total: 0, accepted: 0, failed: 0 } }
  const server = createServer((request, response) => {
    request.resume()
    response.writeHead(statusOf(request)).end(JSON.stringify({ requestId: 'r', responseCode: 200, ...lists }))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  return {
    url: `http://127.0.0.1:${typeof address === 'object' && address ? address.port : 0}`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

const keys = { AWS_ACCESS_KEY_ID: 'AKIA1', AWS_SECRET_ACCESS_KEY: 'hunter2-very-secret' }

async function findings(path: string, env: NodeJS.ProcessEnv = keys) {
  const { status, stdout, stderr } = await runCli(['check', '--json', '--connect', '--config', path], { env })
  expect(stderr).toBe('')
  const { connect, ok } = JSON.parse(stdout) as { connect: Finding[]; ok: boolean }
  expect(ok).toBe(status === 0)
  return { status, stdout, connect, found: new Map(connect.map((finding) => [finding.name, finding])) }
}

describe('check', () => {
  test('prints what a valid config does', async () => {
    await using config = await configWith('base_url: "http://127.0.0.1:8081"')
    const { status, stdout, stderr } = await runCli(['check', '--config', config.path])
    expect([status, stderr]).toEqual([0, ''])
    expect(stdout).toContain(`${config.path} is valid.`)
    expect(stdout).toContain('mqtt://127.0.0.1:1883')
    expect(stdout).toContain('trucks on telemetry/v1/{device}')
    expect(stdout).toContain('to http://127.0.0.1:8081')
    expect(stdout).toContain(join(config.folder, 'spool'))
  })

  test('prints every problem with line and column and ends with status 2', async () => {
    await using config = await configWith('base_url: "http://127.0.0.1:8081", max_in_flight: 0, timout: 5s')
    const { status, stdout, stderr } = await runCli(['check', '--config', config.path])
    expect([status, stdout]).toEqual([2, ''])
    expect(stderr).toContain('CONFIG_INVALID\n')
    expect(stderr).toContain(`${config.path}:7:48  delivery.max_in_flight must be 1 to 64, found 0.`)
    expect(stderr).toContain(
      `${config.path}:7:66  unknown option "timout" in delivery. Did you mean "timeout"?`,
    )
  })

  test('prints the problems as JSON', async () => {
    await using config = await configWith('base_url: "http://127.0.0.1:8081", max_in_flight: 0')
    const { status, stderr } = await runCli(['check', '--json', '--config', config.path])
    expect(status).toBe(2)
    expect(JSON.parse(stderr)).toMatchObject({
      error: { code: 'CONFIG_INVALID', problems: [{ line: 7, column: 48, path: 'delivery.max_in_flight' }] },
    })
  })

  test('tries each bridge with --connect, and takes nothing there', async () => {
    await using broker = await openScriptedBroker({ granted: ([filter]) => [filter === 'low/+' ? 0 : 1] })
    const { url } = await startSandbox()
    await using config = await configWith(`base_url: "${url}"`)
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
    expect(lines).toMatch(/failed bridge +gone: mqtt:\/\/127.0.0.1:1 cannot be used\.\n +Nothing listens/)
  })

  test('also checks the device table', async () => {
    await using config = await configWith('base_url: "http://127.0.0.1:8081" }\ndevices: { file: fleet.csv')
    const missing = await runCli(['check', '--config', config.path])
    expect([missing.status, missing.stderr.split('\n', 1)[0]]).toEqual([2, 'DEVICES_INVALID'])
    await writeFile(join(config.folder, 'fleet.csv'), 'device,asset_id\na,1\na,2\n')
    const twice = await runCli(['check', '--config', config.path])
    expect([twice.status, twice.stderr]).toEqual([2, expect.stringContaining('fleet.csv:3')])
    await writeFile(join(config.folder, 'fleet.csv'), 'device,asset_id\na,1\n')
    expect((await runCli(['check', '--config', config.path])).status).toBe(0)
  })

  test('finds a base_url with the path of the operation, and says what to write', async () => {
    for (const path of ['/v2/telemetry', '/v2/telemetry/batch', '/depot/v2/telemetry/batch/']) {
      await using config = await configWith(`base_url: "https://api.example.com${path}"`)
      const { status, stderr } = await runCli(['check', '--config', config.path])
      expect(status).toBe(2)
      const right = `https://api.example.com${path.startsWith('/depot') ? '/depot' : ''}`
      expect(stderr).toContain(
        `delivery.base_url must have no /v2 and nothing behind it, which the gateway adds: write "${right}"`,
      )
    }
    await using fine = await configWith('base_url: "https://api.example.com/v2/telemetry-eu"')
    expect((await runCli(['check', '--config', fine.path])).status).toBe(0)
  })

  test.each([
    ['mqtt://127.0.0.1:8080', '127.0.0.1:8080', 'ops.listen'],
    ['mqtt://0.0.0.0:9000', '[::1]:9000', null],
    ['mqtt://127.0.0.1:9000', '0.0.0.0:9000', 'ops.listen'],
    ['mqtt://localhost:9000', '127.0.0.1:9000', 'ops.listen'],
    ['mqtt://127.0.0.1', 'localhost:1883', 'ops.listen'],
    ['ws://127.0.0.1/mqtt', '127.0.0.1:8083', 'ops.listen'],
    ['ws://127.0.0.1:9000/a/b', '127.0.0.1:9000', 'ops.listen'],
    ['mqtt://127.0.0.1:0', '127.0.0.1:0', null],
    ['mqtt://127.0.0.2:9000', '127.0.0.1:9000', null],
  ])('finds a port that is used twice: %s and ops %s', async (listener, ops, where) => {
    await using config = await configWith(
      `base_url: "http://127.0.0.1:8081" }\nops: { listen: "${ops}", users: []`,
    )
    const text = await readFile(config.path, 'utf8')
    await writeFile(
      config.path,
      text.replace(
        'broker: { access: { anonymous: true } }',
        `broker: { listeners: [{ url: "${listener}" }], access: { anonymous: true, anonymous_beyond_loopback: true } }`,
      ),
    )
    const { status, stderr } = await runCli(['check', '--config', config.path])
    expect(status).toBe(where === null ? 0 : 2)
    const problem = `${where} must have a port of its own: ingest.broker.listeners[0].url uses port`
    expect(stderr.includes(problem)).toBe(where !== null)
  })

  test('finds two listeners with one port', async () => {
    await using config = await configWith('base_url: "http://127.0.0.1:8081"')
    const text = await readFile(config.path, 'utf8')
    const listeners = 'listeners: [{ url: "mqtt://127.0.0.1:9001" }, { url: "mqtt://localhost:9001" }]'
    await writeFile(config.path, text.replace('broker: {', `broker: { ${listeners},`))
    const { status, stderr } = await runCli(['check', '--config', config.path])
    expect(status).toBe(2)
    expect(stderr).toMatch(
      /gateway\.yaml:1:\d+ {2}ingest\.broker\.listeners\[1\]\.url must have a port of its own/,
    )
  })

  test('finds missing files of credentials and passwords, with their lines', async () => {
    await using config = await configWith(
      'base_url: "http://127.0.0.1:8081", credentials: { source: file, path: keys.json }',
    )
    const text = await readFile(config.path, 'utf8')
    await writeFile(config.path, text.replace('anonymous: true', 'password_file: users.passwd'))
    const { status, stderr } = await runCli(['check', '--config', config.path])
    expect(status).toBe(2)
    expect(stderr).toMatch(
      /gateway\.yaml:1:\d+ +ingest\.broker\.access\.password_file names a file that does not exist: \S+users\.passwd/,
    )
    expect(stderr).toMatch(
      /gateway\.yaml:7:\d+ +delivery\.credentials\.path names a file that does not exist: \S+keys\.json/,
    )
    await writeFile(join(config.folder, 'keys.json'), '{}', { mode: 0o600 })
    await writeFile(join(config.folder, 'users.passwd'), 'truck-7:secret\n', { mode: 0o600 })
    const wrong = await runCli(['check', '--json', '--config', config.path])
    expect(JSON.parse(wrong.stderr)).toMatchObject({
      error: { problems: [{ line: 1, path: 'ingest.broker.access.password_file' }] },
    })
    expect(wrong.stderr).not.toContain('truck-7:secret')
  })

  test('reports problems of the device table together with those of the config', async () => {
    await using config = await configWith(
      'base_url: "http://127.0.0.1:8081", max_in_flight: 0 }\ndevices: { file: fleet.csv',
    )
    await writeFile(join(config.folder, 'fleet.csv'), 'device,asset_id,provider\na,1,\na,2,\nb,3,south\n')
    const { status, stderr } = await runCli(['check', '--config', config.path])
    expect([status, stderr.split('\n', 1)[0]]).toEqual([2, 'CONFIG_INVALID'])
    expect(stderr).toContain('delivery.max_in_flight must be 1 to 64')
    expect(stderr).toMatch(/fleet\.csv:3 +repeats the device/)
    expect(stderr).toMatch(/fleet\.csv:4 +names the provider "south"/)
    const json = await runCli(['check', '--json', '--config', config.path])
    expect(JSON.parse(json.stderr)).toMatchObject({
      error: {
        code: 'CONFIG_INVALID',
        problems: [{ line: 7 }, { file: expect.stringContaining('fleet.csv'), line: 3 }, { line: 4 }],
      },
    })
  })

  test('does not blame the device table for providers that it cannot read', async () => {
    await using config = await configWith(
      'base_url: "http://127.0.0.1:8081", providers: 7 }\ndevices: { file: fleet.csv',
    )
    await writeFile(join(config.folder, 'fleet.csv'), 'device,provider\na,south\n')
    const { stderr } = await runCli(['check', '--config', config.path])
    expect(stderr).toContain('delivery.providers')
    expect(stderr).not.toContain('fleet.csv')
  })

  test('a missing file is status 2', async () => {
    const { status, stderr } = await runCli(['check', '--config', '/nowhere.yaml'])
    expect([status, stderr.split('\n', 1)[0]]).toEqual([2, 'CONFIG_UNREADABLE'])
  })
})

describe('check --connect', () => {
  test('checks DNS, connection, clock, credentials and spool', async () => {
    await using server = await service(() => new Date())
    await using config = await configWith(`base_url: "${server.url}"`)
    const { status, stdout, found } = await findings(config.path)
    expect([...found.values()].filter(({ ok }) => !ok)).toEqual([])
    expect([...found.keys()]).toEqual(['dns', 'connection', 'clock', 'credentials', 'spool'])
    expect(found.get('credentials')?.what).toContain('AKIA1')
    expect(stdout).not.toContain('hunter2')
    expect(status).toBe(0)
  })

  test('prints each finding on its own line', async () => {
    await using server = await service(() => new Date())
    await using config = await configWith(`base_url: "${server.url}"`)
    const { status, stdout } = await runCli(['check', '--connect', '--config', config.path], { env: {} })
    expect(status).toBe(1)
    expect(stdout).toMatch(/^ {2}ok {5}connection /m)
    expect(stdout).toMatch(/^ {2}failed credentials /m)
  })

  test.each([
    [3_600_000, false],
    [-3_600_000, false],
    [60_000, true],
  ])('a clock that is %i ms off is accepted: %s', async (offsetMs, ok) => {
    await using server = await service(() => new Date(Date.now() + offsetMs))
    await using config = await configWith(`base_url: "${server.url}"`)
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
      await using config = await compress(url)
      const { status, found } = await findings(config.path)
      expect(found.get('compression')).toMatchObject({
        ok: true,
        what: expect.stringMatching(/accepts requests/),
      })
      expect(status).toBe(0)
    })

    test('fails where the service accepts the same batch only without compression', async () => {
      await using server = await answering(({ headers }) =>
        headers['content-encoding'] === 'gzip' ? 415 : 200,
      )
      await using config = await compress(server.url)
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
      await using server = await answering(() => 403)
      await using config = await compress(server.url)
      const { found } = await findings(config.path)
      expect(found.get('compression')).toMatchObject({
        ok: true,
        what: expect.stringMatching(/not known.*403.*403/),
      })
    })
  })

  test('a service that sends no Date is no failure', async () => {
    await using server = await service(() => null)
    await using config = await configWith(`base_url: "${server.url}"`)
    expect((await findings(config.path)).found.get('clock')).toMatchObject({ ok: true })
  })

  test('a closed port fails the connection check, and the others still run', async () => {
    await using config = await configWith('base_url: "http://127.0.0.1:1"')
    const { status, found } = await findings(config.path)
    expect(status).toBe(1)
    expect([...found].map(([name, { ok }]) => [name, ok])).toEqual([
      ['dns', true],
      ['connection', false],
      ['credentials', true],
      ['spool', true],
    ])
  })

  test('https to a plain TCP server fails the TLS check', async () => {
    const server = createTcpServer((socket) => socket.on('error', () => undefined).end('hello\n'))
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const address = server.address()
    const port = typeof address === 'object' && address ? address.port : 0
    await using config = await configWith(`base_url: "https://127.0.0.1:${port}"`)
    const { found } = await findings(config.path)
    expect(found.get('tls')).toMatchObject({ ok: false })
    expect(found.has('clock')).toBe(false)
    server.close()
  })

  test('missing credentials are reported with what to do', async () => {
    await using config = await configWith('base_url: "http://127.0.0.1:1"')
    const { found } = await findings(config.path, {})
    expect(found.get('credentials')).toMatchObject({
      ok: false,
      act: expect.stringContaining('delivery.credentials'),
    })
  })

  test('providers with the same connection share its check; credentials are checked for each', async () => {
    await using server = await service(() => new Date())
    const list =
      'providers: [{ name: north, provider_key: A }, { name: south, provider_key: B }, ' +
      '{ name: west, base_url: "http://127.0.0.1:1" }]'
    await using config = await configWith(`base_url: "${server.url}", ${list} }\ndevices: { file: fleet.csv`)
    await writeFile(join(config.folder, 'fleet.csv'), 'device,provider\na,north\n')
    const { status, connect } = await findings(config.path)
    expect(status).toBe(1)
    expect(connect.map(({ name, ok, providers }) => [name, ok, providers.join('+')])).toEqual([
      ['dns', true, 'north+south'],
      ['connection', true, 'north+south'],
      ['clock', true, 'north+south'],
      ['dns', true, 'west'],
      ['connection', false, 'west'],
      ['credentials', true, 'north'],
      ['credentials', true, 'south'],
      ['credentials', true, 'west'],
      ['spool', true, ''],
    ])
    const { stdout } = await runCli(['check', '--connect', '--config', config.path], { env: keys })
    expect(stdout).toContain(`to ${server.url}, provider north, X-Provider-Key A, credentials: environment`)
    expect(stdout).toMatch(/^ {2}ok {5}dns {10}north, south: /m)
    expect(stdout).toMatch(/^ {2}failed connection {3}west: /m)
  })

  test('a device table that names an unknown provider is refused with the known ones', async () => {
    await using config = await configWith(
      'base_url: "http://127.0.0.1:1", providers: [{ name: north }] }\ndevices: { file: fleet.csv',
    )
    await writeFile(join(config.folder, 'fleet.csv'), 'device,provider\na,south\n')
    const { status, stderr } = await runCli(['check', '--config', config.path])
    expect([status, stderr]).toEqual([2, expect.stringMatching(/fleet\.csv:2.*"south"; known are north/)])
  })

  test('uses the proxy and reports its refusal', async () => {
    await using server = await service(() => new Date())
    const proxy = await startConnectProxy()
    await using config = await configWith(`base_url: "${server.url}", proxy: "${proxy.url}"`)
    const fine = await findings(config.path)
    expect(fine.connect.map(({ name, ok }) => [name, ok])).toEqual([
      ['proxy', true],
      ['clock', true],
      ['credentials', true],
      ['spool', true],
    ])
    const closed = await startConnectProxy({ mood: 407 })
    await using other = await configWith(`base_url: "${server.url}", proxy: "${closed.url}"`)
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
    await using config = await configWith(`base_url: "${server.url}", ${tls}`)
    await writeFile(join(config.folder, 'ca.pem'), authority.ca)
    await writeFile(join(config.folder, 'cert.pem'), mine.cert)
    await writeFile(join(config.folder, 'key.pem'), mine.key)
    const { status, found } = await findings(config.path)
    expect([...found].filter(([, { ok }]) => !ok)).toEqual([])
    expect([...found.keys()]).toContain('tls')
    expect(status).toBe(0)
    await using other = await configWith(`base_url: "${server.url}"`)
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
    await using config = await configWith(
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

  test('a spool path that is a file fails', async () => {
    await using config = await configWith('base_url: "http://127.0.0.1:1"', './gateway.yaml')
    expect((await findings(config.path)).found.get('spool')).toMatchObject({ ok: false })
  })

  test.skipIf(process.getuid?.() === 0)('a spool directory without write access fails', async () => {
    await using config = await configWith('base_url: "http://127.0.0.1:1"', './closed/spool')
    await mkdir(join(config.folder, 'closed'))
    await chmod(join(config.folder, 'closed'), 0o500)
    expect((await findings(config.path)).found.get('spool')).toMatchObject({ ok: false })
  })
})
