import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { request } from 'node:https'
import { join } from 'node:path'
import { connect, type TLSSocket } from 'node:tls'
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { hashPassword } from '../../src/std/passwords/passwords.ts'
import { configText } from '../support/config-text.ts'
import { createAuthority, type Certificate } from '../support/certificates.ts'
import { runCli } from '../support/cli-world.ts'
import { eventually } from '../support/eventually.ts'
import { newFolder } from '../support/folders.ts'
import { connectBytes, createDevice, type Device } from '../support/mqtt-device.ts'
import { startPipeline, type Pipeline } from '../support/pipeline-world.ts'

let hash: string
beforeAll(async () => {
  hash = await hashPassword('right', 12)
})

async function start(broker: string, files: Record<string, string>, ops = '') {
  const folder = await newFolder()
  const write = async (name: string, text: string) => writeFile(join(folder, name), text)
  for (const [name, text] of Object.entries(files)) await write(name, text)
  const config = configText({ ingest: `\n  broker:${broker}`, delivery: '', ops })
  const pipeline = await startPipeline({ folder, config })
  return { pipeline, folder, write, port: Number(new URL(pipeline.gateway.addresses.mqtt[0]!).port) }
}

const countOf = (pipeline: Pipeline, kind: string) =>
  pipeline.events.filter((event) => event.kind === kind).length

describe('a changed password file', () => {
  test('is put in force; a broken one changes nothing and is a condition', async () => {
    const broker = ' { listeners: [{ url: "mqtt://127.0.0.1:0" }], access: { password_file: users } }'
    const { pipeline, write, port } = await start(broker, { users: `old:${hash}\n` })
    const login = async (username: string, password = 'right'): Promise<[number, Device]> => {
      const device = await createDevice({ port, clientId: `${username}-${password}` })
      onTestFinished(() => device.destroy())
      const { returnCode = -1 } = await device.connect({ username, password: Buffer.from(password) })
      return [returnCode, device]
    }
    expect((await login('new'))[0]).toBe(4)
    await write('users', `new:${hash}\n`)
    await pipeline.until(() => countOf(pipeline, 'mapping_reloaded') === 1)
    expect((await login('new'))[0]).toBe(0)
    expect((await login('old'))[0]).toBe(4)

    await write('users', 'new:secret-in-plain-text\n')
    await pipeline.until(() => pipeline.codes().includes('ACCESS_STALE'))
    expect((await login('new'))[0]).toBe(0)
    const { what, why } = pipeline.condition('ACCESS_STALE')!
    expect(what).toMatch(/users cannot be used. The former ones stay in force/)
    expect(why).toMatch(/^line 1 must have a hash/)
    expect(JSON.stringify([pipeline.events, pipeline.status()]) + pipeline.log()).not.toContain('secret-in')

    await write('users', `old:${hash}\nnew:${hash}\n`)
    await pipeline.until(() => !pipeline.codes().includes('ACCESS_STALE'))
    expect((await login('old'))[0]).toBe(0)
  })

  test('ends the connection of a withdrawn user; not those of most, unless a person confirms it', async () => {
    const broker = `
    listeners: [{ url: "mqtt://127.0.0.1:0" }]
    access: { password_file: users, tokens: [{ name: reefer, token: "\${file:token}" }] }`
    const lineOf = (user: string) => `${user}:${hash}\n`
    const files = { users: ['a', 'b', 'c'].map(lineOf).join(''), token: 'a-token-of-sixteen-characters' }
    const { pipeline, folder, write, port } = await start(broker, files)
    const reload = (...words: string[]) =>
      runCli(['reload', ...words, '--socket', join(folder, 'spool.sock')])
    const login = async (username: string) => {
      const device = await createDevice({ port, clientId: `of-${username}` })
      onTestFinished(() => device.destroy())
      const { returnCode } = await device.connect({ username, password: Buffer.from('right') })
      expect(returnCode).toBe(0)
      return device
    }
    const [a, b, c] = [await login('a'), await login('b'), await login('c')]
    const reefer = await login(files.token)

    await write('users', ['b', 'c'].map(lineOf).join(''))
    await pipeline.until(() => a.closed)
    expect([b.closed, c.closed, reefer.closed]).toEqual([false, false, false])

    await write('users', lineOf('c'))
    await pipeline.until(() => b.closed)
    expect([c.closed, reefer.closed]).toEqual([false, false])

    // Cut by mistake.
    await write('users', '')
    await write('token', 'another-token-of-a-device')
    await pipeline.until(() => pipeline.codes().includes('ACCESS_STALE'))
    expect((await reload()).stdout).toContain('2 connected clients of 2 may not connect any more')
    expect([c.closed, reefer.closed]).toEqual([false, false])
    // Its user is valid still.
    const again = await login('c')
    await pipeline.until(() => c.closed)

    expect((await reload('--yes')).status).toBe(0)
    await pipeline.until(() => again.closed && reefer.closed && !pipeline.codes().includes('ACCESS_STALE'))
    const reasons = pipeline.events.flatMap((event) => (event.kind === 'client_dropped' ? event.reason : []))
    expect(reasons).toEqual(['access_withdrawn', 'access_withdrawn', 'access_withdrawn', 'access_withdrawn'])
  })

  test('that was cut ends nobody, also where a listener for everybody has more clients', async () => {
    const broker = `
    listeners:
      - { url: "mqtt://127.0.0.1:0", access: { password_file: users } }
      - { url: "mqtt://127.0.0.1:0", access: { anonymous: true } }`
    const linesOf = (users: readonly string[]) => users.map((user) => `${user}:${hash}\n`).join('')
    const trucks = ['a', 'b', 'c', 'd']
    const { pipeline, write, port } = await start(broker, { users: linesOf(trucks) })
    const open = new URL(pipeline.gateway.addresses.mqtt[1]!).port
    const connected: Device[] = []
    const connectTo = async (at: number, clientId: string, login = {}) => {
      const device = await createDevice({ port: at, clientId })
      onTestFinished(() => device.destroy())
      expect(await device.connect(login)).toMatchObject({ returnCode: 0 })
      connected.push(device)
    }
    for (const username of trucks)
      await connectTo(port, `of-${username}`, { username, password: Buffer.from('right') })
    for (let n = 0; n < 9; n += 1) await connectTo(Number(open), `van-${n}`)

    await write('users', linesOf(['a']))
    await pipeline.until(() => pipeline.codes().includes('ACCESS_STALE'))
    expect(pipeline.condition('ACCESS_STALE')?.what).toContain(
      '3 connected clients of 4 may not connect any more',
    )
    expect(connected.map(({ closed }) => closed)).not.toContain(true)
  })

  test('a person closes the connections of a client id, a user, or an address', async () => {
    const broker = ' { listeners: [{ url: "mqtt://127.0.0.1:0" }], access: { password_file: users } }'
    const { pipeline, folder, port } = await start(broker, { users: `a:${hash}\nb:${hash}\n` })
    const kick = (name: string) => runCli(['clients', 'kick', name, '--socket', join(folder, 'spool.sock')])
    for (const [username, name] of [
      ['a', 'truck-1'],
      ['b', 'b'],
      ['a', '127.0.0.1'],
    ] as const) {
      const device = await createDevice({ port, clientId: 'truck-1' })
      onTestFinished(() => device.destroy())
      await device.connect({ username, password: Buffer.from('right') })
      device.publish({ topic: 'telemetry/v1/a', payload: '{"ts":1750000000000}', messageId: 1 })
      await device.acked(1)
      expect((await kick('truck-9')).status).toBe(1)
      expect((await kick(name)).stdout).toBe(`1 connection of "${name}" closed.\n`)
      await pipeline.until(() => device.closed)
    }
    expect(pipeline.status().totals.messages).toBe(3)
  })
})

describe('changed certificates', () => {
  const devices = createAuthority('Devices')
  const gateways = createAuthority('Gateways')
  const revoked = devices.issue({ names: ['truck-7'] })
  const valid = devices.issue({ names: ['truck-8'] })
  const broker = `

    access: { certificates: true }
    listeners:
      - url: mqtts://127.0.0.1:0
        tls: { cert: cert.pem, key: key.pem, client_ca: ca.pem, client_crl: crl.pem, certificate_name: dns }
`
  const filesOf = (own: Certificate) => ({
    'cert.pem': own.cert,
    'key.pem': own.key,
    'ca.pem': devices.ca,
    'crl.pem': devices.revoke([]),
  })

  let clients = 0
  /** Resolves with the CONNACK, or null where TLS refuses the client. */
  async function login(port: number, own: Certificate, more: { session?: Buffer; clientId?: string } = {}) {
    const { clientId = `c${(clients += 1)}` } = more
    const options = { port, host: '127.0.0.1', servername: 'localhost', ca: gateways.ca, ...own, ...more }
    const socket: TLSSocket = connect(options)
    onTestFinished(() => void socket.destroy())
    let session: Buffer | undefined
    socket.on('session', (given) => (session = given))
    socket.on('error', () => socket.destroy())
    const answer = new Promise<Buffer | null>((resolve) => {
      socket.once('data', resolve)
      socket.once('close', () => resolve(null))
    })
    socket.once('secureConnect', () => socket.write(connectBytes(clientId, { keepalive: 60 })))
    const connack = await answer
    return { returnCode: connack?.[3] ?? null, socket, session: () => session }
  }

  test('of clients that end soon are a condition, until the client comes with another one', async () => {
    const { pipeline, port } = await start(broker, filesOf(gateways.issue({ names: ['localhost'] })))
    const issue = (days: number) =>
      devices.issue({
        names: ['truck-9'],
        from: new Date(Date.now() - 365 * 86_400_000),
        until: new Date(Date.now() + days * 86_400_000),
      })
    const clientId = 'truck-9'
    expect((await login(port, issue(20), { clientId })).returnCode).toBe(0)
    expect((await login(port, valid)).returnCode).toBe(0)
    await pipeline.until(() => pipeline.codes().includes('CLIENT_CERTIFICATES_EXPIRE'))
    const { what, why } = pipeline.condition('CLIENT_CERTIFICATES_EXPIRE')!
    expect(what).toMatch(/^Client certificates end soon, or have ended: "truck-9" 2/)
    expect(why).toBe('None has ended yet.')
    expect((await login(port, issue(400), { clientId })).returnCode).toBe(0)
    await pipeline.until(() => !pipeline.codes().includes('CLIENT_CERTIFICATES_EXPIRE'))
  })

  test('are used for new connections; a revoked client is closed and refused, also with a ticket', async () => {
    const first = gateways.issue({ names: ['localhost'] })
    const second = gateways.issue({ names: ['localhost'] })
    const { pipeline, write, port } = await start(broker, filesOf(first))
    const before = await login(port, revoked)
    expect(before.returnCode).toBe(0)
    await eventually(() => before.session() !== undefined)
    const resumed = await login(port, revoked, { session: before.session()! })
    expect([resumed.returnCode, resumed.socket.isSessionReused()]).toEqual([0, true])

    const stays = await login(port, valid)
    const more = await login(port, valid)
    await write('crl.pem', devices.revoke([revoked]))
    await pipeline.until(() => countOf(pipeline, 'mapping_reloaded') === 1)
    await eventually(() => before.socket.closed && resumed.socket.closed)
    expect([stays.socket.closed, more.socket.closed]).toEqual([false, false])
    expect((await login(port, revoked)).returnCode).toBeNull()
    expect(
      (await login(port, revoked, { session: resumed.session() ?? before.session()! })).returnCode,
    ).toBeNull()
    const other = await login(port, valid)
    expect(other.returnCode).toBe(0)

    await write('cert.pem', second.cert)
    await pipeline.until(() => pipeline.codes().includes('MAPPING_STALE'))
    expect((await login(port, valid)).returnCode).toBe(0)
    await write('key.pem', second.key)
    await pipeline.until(() => !pipeline.codes().includes('MAPPING_STALE'))
    const renewed = await login(port, valid)
    const serialOf = ({ socket }: { socket: TLSSocket }) => socket.getPeerCertificate().serialNumber
    expect(renewed.returnCode).toBe(0)
    expect(serialOf(renewed)).not.toBe(serialOf(other))

    other.socket.write(Buffer.from([0xc0, 0]))
    const [pong] = (await once(other.socket, 'data')) as [Buffer]
    expect(pong).toEqual(Buffer.from([0xd0, 0]))
  })
})

describe('changed users and certificates of ops', () => {
  const gateways = createAuthority('Gateways')
  const mqtt = ' { listeners: [{ url: "mqtt://127.0.0.1:0" }], access: { anonymous: true } }'
  const ops =
    'tls: { cert: cert.pem, key: key.pem }' +
    ', users: [{ name: admin, password_hash: "${file:ops-users}", rights: [read, change] }]'

  /** The status of the answer, and the number of the certificate. */
  function get(url: string, password: string): Promise<{ status: number; serial: string }> {
    return new Promise((resolve, reject) => {
      const authorization = `Basic ${Buffer.from(`admin:${password}`).toString('base64')}`
      const options = { headers: { authorization }, agent: false, ca: gateways.ca }
      const sent = request(`${url}/status`, options, (response) => {
        const { serialNumber } = (response.socket as TLSSocket).getPeerCertificate()
        response.resume()
        response.on('end', () => resolve({ status: response.statusCode ?? 0, serial: serialNumber }))
      })
      sent.on('error', reject)
      sent.end()
    })
  }

  test('are used for the next requests, without a restart; what cannot be used is a condition', async () => {
    const [first, second] = [gateways.issue(), gateways.issue()]
    const files = { 'cert.pem': first.cert, 'key.pem': first.key, 'ops-users': `admin:${hash}\n` }
    const { pipeline, write } = await start(mqtt, files, ops)
    const url = pipeline.gateway.addresses.ops
    const before = await get(url, 'right')
    expect(before.status).toBe(200)

    await write('ops-users', `admin:${await hashPassword('changed', 12)}\n`)
    await pipeline.until(() => countOf(pipeline, 'mapping_reloaded') === 1)
    // It was remembered as right.
    expect((await get(url, 'right')).status).toBe(401)
    expect((await get(url, 'changed')).status).toBe(200)

    await write('cert.pem', second.cert)
    await pipeline.until(() => pipeline.codes().includes('MAPPING_STALE'))
    expect(await get(url, 'changed')).toEqual({ status: 200, serial: before.serial })
    const { why } = pipeline.condition('MAPPING_STALE')!
    expect(why).toContain('ops.tls must be a certificate and its key')
    await write('key.pem', second.key)
    await pipeline.until(() => !pipeline.codes().includes('MAPPING_STALE'))
    const renewed = await get(url, 'changed')
    expect(renewed.status).toBe(200)
    expect(renewed.serial).not.toBe(before.serial)
    expect(pipeline.condition('RESTART_NEEDED')).toBeUndefined()
  })

  test('need a restart where the address or TLS changes with them', async () => {
    const files = { 'ops-users': `admin:${hash}\n` }
    const { pipeline, folder } = await start(mqtt, files)
    const path = join(folder, 'gateway.yaml')
    const text = await readFile(path, 'utf8')
    const users = ops.slice(ops.indexOf(', users'))
    await writeFile(path, text.replace('listen: "127.0.0.1:0"', `listen: "127.0.0.1:65000"${users}`))
    await pipeline.until(() => pipeline.condition('RESTART_NEEDED') !== undefined)
    const anybody = await fetch(`${pipeline.gateway.addresses.ops}/status`)
    expect(anybody.status).toBe(200)

    await writeFile(path, text.replace('listen: "127.0.0.1:0"', `listen: "127.0.0.1:0"${users}`))
    await pipeline.until(() => countOf(pipeline, 'mapping_reloaded') === 2)
    expect((await fetch(`${pipeline.gateway.addresses.ops}/status`)).status).toBe(401)
  })
})
