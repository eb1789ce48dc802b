import { describe, expect, test } from 'vitest'
import type { StoredClient } from '../../../../src/ingest/broker/clients/changed-clients.ts'
import { createClients, isShared } from '../../../../src/ingest/broker/clients/clients.ts'
import type { GatewayEvent } from '../../../../src/domain/event.ts'
import type { Sender } from '../../../../src/domain/message.ts'
import { createFakeClock } from '../../../support/fake-clock.ts'
import { eventually } from '../../../support/eventually.ts'
import { stepCases, withTimes } from '../../../support/step-cases.ts'
import { openIngest, type IngestWorld, accessFor } from '../../../support/ingest-world.ts'
import { openMapperOf, truckSource } from '../../../support/mapping-world.ts'
import { auto } from '../../../support/memory-intake-spool.ts'

const users = ['depot', 'yard']
const accessOf = (anonymous: boolean) => accessFor(users, anonymous)
const asUser = (name: string) => ({ username: name, password: Buffer.from(name) })

const reading = (km: number) => JSON.stringify({ ts: 1_760_000_000_000 + km, lat: 52, lon: 13 })

async function stateOf(world: IngestWorld, clientId: string, state: string): Promise<unknown> {
  while (world.ingest.clients.find(clientId)?.state !== state) await new Promise(setImmediate)
  return world.ingest.clients.find(clientId)
}

describe('a will', () => {
  const will = { topic: 'telemetry/v1/truck-8', payload: Buffer.from(reading(1)), qos: 1 as const }

  test('for another truck is ignored and counted, and marks its own client as lost', async () => {
    const spool = auto()
    await using world = await openIngest(spool, { mapper: openMapperOf([truckSource()]) })
    const device = await world.connection('truck-7')
    await device.connect({ will })
    device.publish({ topic: 'telemetry/v1/truck-7', payload: reading(2) })
    await device.acked(1)
    device.destroy()
    expect(await stateOf(world, 'truck-7', 'lost')).toMatchObject({ willCame: true })
    expect(spool.payloads.map(({ device }) => device)).toEqual(['truck-7'])
    expect(world.ingest.counters().ignoredByReason).toEqual([{ source: 'trucks', reason: 'will', count: 1 }])
    expect(world.ingest.clients.find('truck-8')).toBeNull()
  })

  test('is taken where the source says so', async () => {
    const spool = auto()
    const mapper = openMapperOf([truckSource({}, { wills: 'take' })])
    await using world = await openIngest(spool, { mapper })
    const device = await world.connection('truck-7')
    await device.connect({ will })
    device.destroy()
    expect(await stateOf(world, 'truck-7', 'lost')).toMatchObject({ willCame: true })
    await eventually(() => spool.payloads.length > 0)
    expect(spool.payloads.map(({ device }) => device)).toEqual(['truck-8'])
  })

  test('that no source takes is no dead letter', async () => {
    const spool = auto()
    await using world = await openIngest(spool, { mapper: openMapperOf([truckSource()]) })
    const device = await world.connection('truck-7')
    await device.connect({ will: { ...will, topic: 'status/truck-7' } })
    device.destroy()
    await spool.ended(1)
    expect(world.ingest.counters()).toMatchObject({ received: 1, ignored: 1, dead: 0 })
  })
})

describe('a message with RETAIN', () => {
  test('is an ordinary message, also for a source that ignores retained messages', async () => {
    const spool = auto()
    const mapper = openMapperOf([truckSource({}, { retained: 'ignore' })])
    await using world = await openIngest(spool, { mapper })
    const device = await world.device('truck-7')
    for (const qos of [0, 1, 2] as const)
      device.publish({
        topic: 'telemetry/v1/truck-7',
        payload: reading(qos),
        qos,
        messageId: qos + 1,
        retain: true,
      })
    await device.acked(3)
    expect(world.ingest.counters()).toMatchObject({ mapped: 3, ignored: 0 })
  })
})

describe('a client id', () => {
  test('two identities that connect with it in the same moment both get in', async () => {
    await using world = await openIngest(auto(), accessOf(false))
    const both = await Promise.all([world.connection('truck-7'), world.connection('truck-7')])
    const codes = await Promise.all(
      both.map(async (device, index) => (await device.connect(asUser(users[index]!))).returnCode),
    )
    expect(codes.toSorted((a, b) => (a ?? 0) - (b ?? 0))).toEqual([0, 0])
  })
})

type Who = string | { client: string; identity?: string; address?: string; protocol?: string }
type Refused = {
  client?: string | null
  identity?: string
  userName?: string
  address?: string | null
  reason?: string
  detail?: string
}
type Known = {
  clock: ReturnType<typeof createFakeClock>
  /** Of the clock of the clients. */
  aheadMs: number
  events: GatewayEvent[]
  clients: ReturnType<typeof createClients>
  stored: StoredClient[]
  /** Of the last connection of each. */
  senders: Map<string, Sender>
}

function begin(known: Known): void {
  known.clients = createClients({
    clock: { ...known.clock, now: () => known.clock.now() + known.aheadMs },
    emit: (event) => void known.events.push(event),
  })
}

function startKnown(): Known {
  const known = {
    clock: createFakeClock(),
    aheadMs: 0,
    events: [],
    stored: [],
    senders: new Map(),
  } as unknown as Known
  begin(known)
  return known
}

function newSender(who: Who): Sender {
  const { client, identity = null } = typeof who === 'string' ? { client: who } : who
  return { clientId: client, userName: null, certificateName: null, identity }
}

const nameOf = ({ clientId, identity }: Sender) => `${clientId} ${identity}`
const senderOf = ({ senders }: Known, who: Who) => senders.get(nameOf(newSender(who))) ?? newSender(who)

function connect({ clients, senders }: Known, who: Who): void {
  const { address = null, protocol } = typeof who === 'string' ? {} : who
  const sender = newSender(who)
  senders.set(nameOf(sender), sender)
  clients.connected(sender, address, ...(protocol === undefined ? [] : [{ protocol }]))
}

const end = (known: Known, [who, isClean]: [Who, boolean]) =>
  known.clients.ended(senderOf(known, who), isClean)

function refuse({ clients }: Known, refused: Refused): void {
  const { client = null, address = '10.0.0.8', reason = 'bad_credentials', detail = 'd.', ...more } = refused
  clients.refused({ clientId: client, address, ...more }, { reason, detail })
}

const fault = { reason: 'bad_credentials', detail: 'd.' }
const noted = (known: Known, value: object) =>
  withTimes(value, known.clock.now() + known.aheadMs) as Record<string, unknown>

stepCases(import.meta.filename, startKnown, {
  connect,
  end,
  refuse,
  /** `{n}` in the name counts up: they are refused, or connect and end. */
  many: (
    known: Known,
    { name, times, isRefused = false }: { name: string; times: number; isRefused?: boolean },
  ) => {
    for (let n = 0; n < times; n += 1) {
      const client = name.replace('{n}', `${n}`)
      if (isRefused) refuse(known, { client })
      else {
        connect(known, client)
        end(known, [client, true])
      }
    }
  },
  messageRefused: (known: Known, who: Who) => known.clients.messageRefused(senderOf(known, who), fault),
  unnamed: (known: Known, who: Who) =>
    known.clients.unnamed(senderOf(known, who), {
      topic: 't',
      source: null,
      became: 'dead',
      reason: 'NO_SOURCE',
      detail: '',
    }),
  pass: ({ clock }: Known, ms: number) => clock.advance(ms),
  clockStepped: (known: Known, byMs: number) => {
    known.aheadMs += byMs
    known.clients.clockStepped(byMs)
  },
  /** What changed goes to the disk, at most so many; the client ids of it. */
  save: (known: Known, { most, clients }: { most: number; clients: string[] }) => {
    const changed = known.clients.takeChanged(most)
    expect(changed.map(({ view }) => view?.clientId ?? 'none').toSorted()).toEqual(clients.toSorted())
    const savedAt = known.clock.now() + known.aheadMs
    for (const { key, view } of changed) if (view !== null) known.stored.push({ key, view, savedAt })
  },
  changed: ({ clients }: Known, names: string[]) =>
    expect(clients.takeChanged(100).map(({ key }) => key)).toEqual(names),
  goneFromDisk: ({ clients }: Known, count: number) =>
    expect(clients.takeChanged(100).map(({ view }) => view)).toEqual(Array<null>(count).fill(null)),
  next: begin,
  restore: ({ clients, stored }: Known) => clients.restore(stored),
  forgetAll: async ({ clients, clock }: Known) => {
    await clock.advance(1)
    clients.forgetBefore(clock.now())
  },
  find: (known: Known, expected: Record<string, object | null>) => {
    for (const [who, of] of Object.entries(expected)) {
      const [client = '', identity] = who.split(' of ')
      const found = known.clients.find(client, ...(identity === undefined ? [] : [identity]))
      if (of === null) expect(found, who).toBeNull()
      else expect(found, who).toMatchObject(noted(known, of))
    }
  },
  findAddress: ({ clients }: Known, [address, expected]: [string, object]) =>
    expect(clients.findAddress(address)).toMatchObject(expected),
  isShared: ({ clients, clock }: Known, [client, shared]: [string, boolean]) =>
    expect(isShared(clients.find(client)!, clock.now())).toBe(shared),
  mayConnect: ({ clients }: Known, [client, identity, may]: [string, string | null, boolean]) =>
    expect(clients.mayConnect(client, identity)).toBe(may),
  takeOvers: ({ clients }: Known, count: number) => expect(clients.takeOvers()).toBe(count),
  withFaults: ({ clients }: Known, count: number) => expect(clients.withFaults(100_000)).toHaveLength(count),
  /** The last one says so many; `null`: there is none. */
  sharedEvent: ({ events }: Known, takeOvers: number | null) => {
    const last = events.findLast(({ kind }) => kind === 'client_id_shared')
    if (takeOvers === null) expect(last).toBeUndefined()
    else expect(last).toMatchObject({ takeOvers })
  },
})
