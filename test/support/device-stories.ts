// device-stories.ts: stories of devices in front of ingest, as rows of YAML. test/ingest/broker/device-stories.cases.yaml says
// what its steps mean; a story is told with a spool in memory whose commits are steps, or on a real spool that can be
// restarted.

import { expect, test, vi } from 'vitest'
import type { IConnectPacket } from 'mqtt-packet'
import { ingestOptions, ingestSchema } from '../../src/ingest/config.ts'
import type { IngestOptions } from '../../src/ingest/ingest.ts'
import { rowsBeside } from './case-rows.ts'
import { useFakeTimers } from './fake-timers.ts'
import { accessFor, droppedBy, openIngest, refusedBy, textOf } from './ingest-world.ts'
import { createMemoryIntakeSpool, spoolWriteFault } from './memory-intake-spool.ts'
import { connectBytes, createDevice, publishBytes, type Device } from './mqtt-device.ts'
import { openSpoolWorld } from './open-spool.ts'

/** What holds after the steps before it, in part. */
type Check = Partial<{
  counters: object
  payloads: string[]
  events: object[]
  /** The kinds of all events of clients and their messages. */
  reported: string[]
  client: { clientId: string }
}>

type Story = {
  name: string
  commits?: 'auto' | 'by hand'
  /** On a real spool; its commits are its own. */
  isReal?: boolean
  options?: Partial<IngestOptions>
  /** `ingest.broker.rules` */
  rules?: object
  /** Those who may log in with their name as password; others may, too. */
  users?: string[]
  /** False where nobody else may. */
  anonymous?: boolean
  steps: (string | Check | (string | Check)[])[]
  /** The story is told for each; `$name` stands for its value. */
  each?: Record<string, unknown>[]
}

/** Tells the stories of the file NAME.cases.yaml beside NAME.test.ts. */
export function tellStories(testFile: string): void {
  test.each((rowsBeside(testFile) as Story[]).flatMap(eachOf))('$name', tell)
}

function eachOf(story: Story): Story[] {
  const { name, options = {}, steps, each = [{}] } = story
  return each.map((values) => {
    const text = JSON.stringify({ name, options, steps })
    const filled = text.replaceAll(/\$(\w+)/g, (_, value: string) => String(values[value]))
    return { ...story, ...(JSON.parse(filled) as Story) }
  })
}

/** `1-3` is 1, 2, 3. */
function idsOf(text: string): number[] {
  const [first = 0, last = first] = text.split('-').map(Number)
  return Array.from({ length: last - first + 1 }, (_, index) => first + index)
}

/** `clean=false keepalive=1 will=TEXT user=NAME` of a CONNECT. */
function connectOf(words: readonly string[]): Partial<IConnectPacket> & { from?: string } {
  const given = new Map(words.map((word) => word.split('=') as [string, string]))
  const [will, user, from] = ['will', 'user', 'from'].map((name) => given.get(name))
  return {
    clean: given.get('clean') !== 'false',
    keepalive: Number(given.get('keepalive') ?? 0),
    ...(will !== undefined && { will: { topic: 'w', payload: Buffer.from(will), qos: 1, retain: false } }),
    ...(user !== undefined && { username: user, password: Buffer.from(given.get('password') ?? user) }),
    ...(from !== undefined && { from }),
  }
}

/** `publish 1-3 qos 2 dup to TOPIC "text"` or `"9000 letters"`, `pubrel 9`, `ping`, `connect`, `disconnect`, `hex c000`, `half publish 1`. */
function bytesOf(packet: string, clientId: string): Buffer {
  if (packet.startsWith('half ')) return bytesOf(packet.slice(5), clientId).subarray(0, 5)
  const [kind, word = '1'] = packet.split(' ')
  if (kind === 'connect') return connectBytes(clientId)
  if (kind === 'hex') return Buffer.from(word, 'hex')
  if (kind === 'ping') return Buffer.from('c000', 'hex')
  if (kind === 'disconnect') return Buffer.from('e000', 'hex')
  if (kind === 'pubrel') return Buffer.from([0x62, 2, 0, Number(word)])
  const qos = Number(/ qos (\d)/.exec(packet)?.[1] ?? 1) as 0 | 1 | 2
  const given = /"(.*)"/.exec(packet)?.[1]
  const text = given?.replace(/^(\d+) letters$/, (_, count) => 'x'.repeat(Number(count)))
  const topic = / to (\S+)/.exec(packet)?.[1] ?? 't'
  const dup = packet.includes(' dup')
  const publishes = idsOf(word).map((messageId) =>
    publishBytes({ topic, payload: text ?? `m${messageId}`, messageId, qos, dup }),
  )
  return Buffer.concat(publishes)
}

/** Not that of a test with timers of its own. */
const laterMs = setTimeout

/** Most things come within some turns. What takes a second, such as the answer to a wrong password, is awaited in steps. */
async function until(met: () => boolean): Promise<void> {
  for (let turns = 0; !met(); turns += 1)
    await new Promise((resolve) => (turns < 100 ? setImmediate(resolve) : laterMs(resolve, 5)))
}

async function tell(story: Story): Promise<void> {
  const { commits = 'by hand', isReal, options, rules, users, anonymous = true } = story
  const all = story.steps.flat()
  if (all.some((step) => typeof step === 'string' && step.startsWith('time '))) useFakeTimers()
  const spool = createMemoryIntakeSpool({ commits })
  let real = isReal ? await openSpoolWorld() : null
  const broker = { access: { anonymous: true }, rules }
  const more = {
    ...options,
    ...(rules && { rules: ingestOptions(ingestSchema.parse({ broker })).rules }),
    ...(users && accessFor(users, anonymous)),
  }
  const open = () => openIngest(real?.spool ?? spool, { ...more, ...(real && { clock: real.clock }) })
  let world = await open()
  const devices = new Map<string, Device>()
  let others = 0

  const stored = () => real!.spool.lanes().reduce((sum, { pending }) => sum + pending, 0)

  const steppedBy: Record<string, (word: string, count: number) => unknown> = {
    taken: (count) => spool.ended(Number(count)),
    group: (count) => expect(spool.open).toBe(Number(count)),
    commit: () => spool.commit(),
    fail: () => spool.fail(spoolWriteFault()),
    hold: (reason) => spool.setHold(reason as 'spool_full'),
    room: () => spool.setHold(null),
    full: () => spool.setDeadLettersFull(true),
    emptied: () => spool.setDeadLettersFull(false),
    congested: () => spool.setCongested(true),
    flowing: () => spool.setCongested(false),
    busy: () => spool.setBusy(true),
    idle: () => spool.setBusy(false),
    lose: () => spool.lose(),
    reopen: () => spool.reopen(),
    time: (ms) => vi.advanceTimersByTime(Number(ms)),
    clock: (ms) => real!.clock.advance(Number(ms)),
    settled: async () => {
      for (let n = 0; n < 5; n += 1) await world.device(`other ${(others += 1)}`)
    },
    dropped: (reason) => expect(droppedBy(world)).toEqual(reason === 'nobody' ? {} : { [reason]: 1 }),
    rejected: async (reason, count) => {
      await until(() => refusedBy(world)[reason] === count)
      expect(refusedBy(world)).toEqual({ [reason]: count })
    },
    stored: (count) => until(() => stored() === Number(count)),
    restart: async () => {
      await world.ingest.stopAccepting()
      real = await real!.reopen()
      await world[Symbol.asyncDispose]()
      world = await open()
    },
    stop: () => world.ingest.stopAccepting(),
    close: () => world.ingest.close(),
    closed: () =>
      expect(createDevice({ port: world.port, clientId: 'late' })).rejects.toThrow('ECONNREFUSED'),
  }

  const did: Record<string, (device: Device, rest: string) => unknown> = {
    opens: () => undefined,
    connects: (device, rest) => connect(device, rest, 0),
    refused: (device, rest) => connect(device, rest.replace(/^\d+ ?/, ''), Number.parseInt(rest, 10)),
    resumes: (device, rest) => connect(device, `clean=false ${rest}`, 0, true),
    connecting: (device, rest) => device.sendBytes(connectBytes(device.clientId, connectOf(rest.split(' ')))),
    sends: ({ sendBytes, clientId }, rest) =>
      sendBytes(Buffer.concat(rest.split(' + ').map((packet) => bytesOf(packet, clientId)))),
    pings: async (device) => {
      const { length } = device.received
      device.send({ cmd: 'pingreq' })
      await device.until((received) => received.slice(length).some(({ cmd }) => cmd === 'pingresp'))
    },
    hears: (device, rest) => device.until((received) => received.some(({ cmd }) => cmd === rest)),
    waits: (device) => expect(device.received).toEqual([]),
    ends: (device) => device.end(),
    breaks: async (device) => {
      device.destroy()
      await until(() => world.ingest.clients.find(device.clientId)?.state === 'lost')
    },
    gone: (device) => device.gone(),
    stays: (device) => expect(device.closed).toBe(false),
    acks: expectAcks,
  }
  const opening = ['opens', 'connects', 'refused', 'resumes', 'connecting']

  /** What CONNECT stores is committed. */
  async function connect(device: Device, rest: string, returnCode: number, isPresent = false): Promise<void> {
    const { from: _, ...fields } = connectOf(rest.split(' '))
    const connected = device.connect(fields)
    await until(() => {
      if (spool.open > 0) spool.commit()
      return device.received.length > 0
    })
    expect(await connected).toMatchObject({ returnCode, sessionPresent: isPresent })
  }

  /** `puback 1-3, pubcomp 9`: these and no others, in their order. */
  async function expectAcks(device: Device, rest: string): Promise<void> {
    const due = rest.split(', ').flatMap((part) => {
      const [cmd, ids = ''] = part.split(' ')
      return cmd === 'none' ? [] : idsOf(ids).map((messageId) => ({ cmd, messageId }))
    })
    if (!device.closed && due.length > 0) await device.acked(due.length)
    expect(device.acks).toEqual(due)
  }

  async function take(step: string): Promise<void> {
    const [first = '', verb = '', ...rest] = step.split(' ')
    if (first in steppedBy) await steppedBy[first]!(verb, Number(rest[0] ?? 1))
    else if (verb in did) {
      const clientId = first.split('/')[0]!
      const from = connectOf(rest).from
      if (opening.includes(verb)) {
        const place = from === undefined ? {} : { from }
        devices.set(first, await world.connection(clientId, { releases: false, ...place }))
      }
      await did[verb]!(devices.get(first)!, rest.join(' '))
    } else expect.fail(`no step: ${step}`)
    // What it began has its turn.
    await new Promise(setImmediate)
  }

  /** What is counted and reported may come some turns later. */
  async function check(step: Check): Promise<void> {
    let problem: unknown
    const holds = () => {
      try {
        expectOf(step)
        return true
      } catch (error) {
        problem = error
        return false
      }
    }
    const givenUpAt = performance.now() + 2000
    await until(() => holds() || performance.now() > givenUpAt)
    if (!holds()) throw problem
  }

  function expectOf({ counters = {}, payloads, events = [], reported, client }: Check): void {
    const found = Object.entries(world.ingest.counters() as Record<string, unknown>)
    const plain = found.map(([name, value]) => [
      name,
      value instanceof Map ? Object.fromEntries(value) : value,
    ])
    expect(Object.fromEntries(plain)).toMatchObject(counters)
    if (payloads !== undefined) expect(spool.payloads.map(textOf)).toEqual(payloads)
    for (const event of events) expect(world.events).toContainEqual(expect.objectContaining(event))
    const kinds = world.events.map(({ kind }) => kind).filter((kind) => /^(client|publish)_/.test(kind))
    if (reported !== undefined) expect(kinds).toEqual(reported)
    if (client !== undefined) expect(world.ingest.clients.find(client.clientId)).toMatchObject(client)
  }

  for (const step of all) await (typeof step === 'string' ? take(step) : check(step))
  const { received, mapped, ignored, duplicates, dead, dropped, returned, held } = world.ingest.counters()
  expect(received, 'invariant 6').toBe(mapped + ignored + duplicates + dead + dropped + returned + held)
  await world[Symbol.asyncDispose]()
}
