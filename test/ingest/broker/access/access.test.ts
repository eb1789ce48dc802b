import { describe, expect, test } from 'vitest'
import { hashPassword } from '../../../../src/std/passwords/passwords.ts'
import { Secret } from '../../../../src/std/secret.ts'
import { eventually } from '../../../support/eventually.ts'
import { openIngest, senderMapper } from '../../../support/ingest-world.ts'
import { auto } from '../../../support/memory-intake-spool.ts'
import { createDevice } from '../../../support/mqtt-device.ts'

const users = [
  { name: 'depot', password: new Secret('right') },
  { name: 'yard', password: new Secret('other') },
]

const rules = (anonymous: boolean, named: readonly { name: string; password: Secret }[] = users) => ({
  access: [{ anonymous, certificates: false, users: named, passwordFile: null, tokens: [] }],
  passwords: { waitingMax: 100, rememberedMax: 100, refusalDelayMs: 1, refusalDelayMaxMs: 1 },
})

describe('access of clients', () => {
  test.each([
    ['the user name is the identity where its password was checked', users, 'depot'],
    ['a user name that nobody checked is not an identity', [], null],
  ])('%s', async (_what, named, identity) => {
    const { mapper, seen } = senderMapper()
    await using world = await openIngest(auto(), { mapper, ...rules(true, named) })
    const device = await world.connection('truck')
    await device.connect({ username: 'depot', password: Buffer.from('right') })
    device.publish({ topic: 't', payload: 'x' })
    await device.acked(1)
    expect(seen).toEqual([
      { clientId: 'truck', userName: 'depot', certificateName: null, identity, address: '127.0.0.1' },
    ])
  })

  test('the events of a connection name the identity that it has proved', async () => {
    await using world = await openIngest(auto(), { ...rules(false), connectionsPerIdentityMax: 1 })
    const depot = { username: 'depot', password: Buffer.from('right') }
    const device = await world.connection('truck')
    await device.connect(depot)
    const second = await world.connection('second')
    await second.connect(depot)
    const wrong = await world.connection('wrong')
    await wrong.connect({ ...depot, password: Buffer.from('guess') })
    device.sendBytes(Buffer.from([0xc0, 1, 0]))
    await device.gone()
    await eventually(() => world.events.some(({ kind }) => kind === 'client_disconnected'))
    const reasons = ['max_connections_per_identity', 'bad_credentials', 'protocol_error']
    const events = world.events.filter(
      (event) => event.kind.startsWith('client_') && 'reason' in event && reasons.includes(event.reason),
    )
    const end = events.find(({ kind }) => kind === 'client_disconnected')
    expect(end).toMatchObject({
      detail: expect.any(String) as string,
      connectedMs: expect.any(Number) as number,
    })
    expect(end && 'connectedMs' in end && end.connectedMs).toBeGreaterThan(0)
    expect(end && 'connectedMs' in end && end.connectedMs).toBeLessThan(30_000)
    expect(events).toMatchObject([
      { kind: 'client_refused', clientId: 'second', identity: 'depot' },
      { kind: 'client_refused', clientId: 'wrong', identity: null },
      { kind: 'client_dropped', clientId: 'truck', identity: 'depot' },
      { kind: 'client_disconnected', clientId: 'truck', identity: 'depot' },
    ])
  })

  test('a hash is checked, a token stands for its name, and a listener has its own rules', async () => {
    const hashed = [{ name: 'depot', password: new Secret(await hashPassword('right', 12)) }]
    const token = 'k3Jw9x-0000-token-of-7'
    const tokens = [{ name: 'truck-7', token: new Secret(token) }]
    const [own] = rules(false, hashed).access
    const { mapper, seen } = senderMapper()
    const local = { host: '127.0.0.1', port: 0, tls: null }
    await using world = await openIngest(auto(), {
      ...rules(false),
      mapper,
      listeners: [local, local],
      access: [{ ...own!, tokens }, ...rules(true, []).access],
    })
    const attempts = [
      { username: 'depot', password: Buffer.from('right') },
      { username: 'depot', password: Buffer.from('wrong') },
      { username: token },
      { username: 'truck-7' },
    ]
    const codes: number[] = []
    for (const [index, attempt] of attempts.entries()) {
      const device = await world.connection(`c${index}`)
      const { returnCode = -1 } = await device.connect(attempt)
      codes.push(returnCode)
      if (returnCode !== 0) continue
      device.publish({ topic: 't', payload: 'x' })
      await device.acked(1)
    }
    expect(codes).toEqual([0, 4, 0, 4])
    expect(seen).toMatchObject([
      { userName: 'depot', identity: 'depot' },
      { userName: 'truck-7', identity: 'truck-7' },
    ])
    const port = Number(new URL(world.ingest.addresses()[1]!).port)
    const open = await createDevice({ port, clientId: 'open' })
    expect(await open.connect()).toMatchObject({ returnCode: 0 })
    open.destroy()
    expect(JSON.stringify([world.events, world.ingest.counters()])).not.toMatch(/"right|"wrong"|k3Jw9x/)
    expect(world.ingest.counters().authFailures).toEqual({
      failures: 2,
      addresses: [{ name: '127.0.0.1', failures: 2 }],
      users: [
        { name: 'depot', failures: 1 },
        { name: '(unknown user)', failures: 1 },
      ],
    })
  })
})
