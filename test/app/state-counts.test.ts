import { deviceStateNames, noDevices } from '../../src/domain/device-state.ts'
import { encodeEntries, uuidNamed } from '../support/ledger-world.ts'
import { expect, test } from 'vitest'
import { createDeviceViews } from '../../src/app/device-monitor/device-views.ts'
import { createStateCounts } from '../../src/app/device-monitor/state-counts.ts'
import { defaultProvider } from '../../src/domain/ids.ts'
import type { Sender } from '../../src/domain/message.ts'
import { createClients } from '../../src/ingest/broker/clients/clients.ts'
import type { Mapper, Mapping } from '../../src/mapping/mapping.ts'
import { deviceRecords, notedDevices } from '../support/device-records-world.ts'
import { createFakeClock } from '../support/fake-clock.ts'
import { messageOf } from '../support/mapping-world.ts'
import { createRandom } from '../support/random.ts'

const fault = { reason: 'bad_credentials', detail: 'Its password is wrong.' }

/** Devices and clients with names of a few letters, so that a client is often that of a device. */
async function randomWorld(seed: number) {
  const random = createRandom(seed)
  const below = (count: number) => Math.floor(random.next() * count)
  const clock = createFakeClock()
  const records = deviceRecords(clock, { devicesMax: 100 })
  const clients = { ...createClients({ clock, emit: () => undefined }), isUser: () => false }
  const names = Array.from({ length: 12 }, (_, n) => `d${n}`)
  const name = () => names[below(names.length)]!
  const entryOf = notedDevices()
  const senders: Sender[] = []
  const steps: (() => void)[] = [
    () => {
      const userName = below(3) === 0 ? name() : null
      const sender = { clientId: name(), userName, certificateName: null, identity: null }
      senders.push(sender)
      clients.connected(sender, '10.0.0.1').messages += below(2)
    },
    () => senders.length > 0 && clients.ended(senders[below(senders.length)]!, below(2) === 0),
    () => {
      const untaken = { topic: 'a', source: null, became: 'dead', reason: 'NO_SOURCE', detail: '' } as const
      if (senders.length > 0) clients.unnamed(senders[below(senders.length)]!, untaken)
    },
    () => senders.length > 0 && clients.messageRefused(senders[below(senders.length)]!, fault),
    () => {
      const clientId = below(4) === 0 ? null : name()
      clients.refused({ clientId, userName: below(2) === 0 ? name() : null, address: '10.0.0.2' }, fault)
    },
    // Two clients of one id.
    () => {
      const sender = { clientId: name(), userName: null, certificateName: null, identity: null }
      if (below(4) === 0)
        for (let n = 0; n < 8; n += 1) clients.connected({ ...sender }, '10.0.0.3').messages += 1
    },
    () => {
      const end = { at: clock.now() + 86_400_000, isLength: false }
      // It never rejects.
      void records.mute(name(), below(2) === 0 ? null : end)
    },
    () => records.noteSkew(name(), (below(3) - 1) * 90_000_000),
    () => {
      const device = name()
      const entries = encodeEntries([{ payloadId: uuidNamed(device), deviceTime: 1, device }])
      const dead = { kind: 'dead', reason: 'Validation', detail: 'no asset', failure: null } as const
      const settlements = below(2) === 0 ? 'all delivered' : [dead]
      records.notes.settled({
        provider: defaultProvider,
        at: clock.now(),
        entries,
        requestId: null,
        settlements,
      })
    },
    () => {
      const entry = entryOf(names[1]!)
      records.notes.begin(messageOf({}, { arrivedAt: clock.now() }))
      records.notes.heard(entry)
      records.notes.readPosition(entry, clock.now() - 2 * 86_400_000, true, { latitude: 1, longitude: 2 })
      if (below(2) === 0) return
      records.notes.begin(messageOf({}, { arrivedAt: clock.now() + 2 * 86_400_000 }))
      records.notes.read(entry, below(2) === 0)
    },
    ...Array.from({ length: 6 }, () => () => {
      const device = below(3) === 0 ? name() : names[0]!
      const entry = entryOf(device)
      const sender = { clientId: name(), userName: null, certificateName: null, identity: null }
      records.notes.begin(messageOf({}, { arrivedAt: clock.now(), sender }))
      records.notes.heard(entry)
      if (below(4) === 0) records.notes.lost(entry, 'ignored', 'trucks', 'no fix')
      const payload = { device, provider: defaultProvider, windowKey: 'a', duplicateRule: 'always' } as const
      records.notes.payload(payload, 'duplicate')
    }),
  ]
  for (let step = 0; step < 80 + below(200); step += 1) {
    steps[below(steps.length)]!()
    await clock.advance(below(50) === 0 ? 600_000 : below(4000))
  }
  if (below(3) === 0) await clock.advance(3_600_000)
  const listed = names.filter(() => below(3) === 0)
  const assets = new Map(listed.map((device) => [device, below(2) === 0 ? name() : device]))
  const mapping = {
    listed: () => listed,
    rowOf: (device: string) =>
      listed.includes(device) ? { device, asset_id: assets.get(device) } : undefined,
  } as unknown as Mapping
  const mapper = { deviceClock: () => undefined } as unknown as Mapper
  return { clock, records, clients, mapping, mapper }
}

test('the states that are counted are those of the views', async () => {
  const seen = new Map<string, number>()
  for (let seed = 1; seed <= 150; seed += 1) {
    const { clock, records, clients, mapping, mapper } = await randomWorld(seed)
    const views = createDeviceViews({
      ourTime: clock,
      records,
      active: () => ({ mapper, mapping, topics: () => [] }),
      clients: () => clients,
    })
    const shown = noDevices()
    for (const { state } of views.all(mapping)) {
      shown[state] += 1
      seen.set(state, (seen.get(state) ?? 0) + 1)
    }
    const counts = createStateCounts({ records, clients: () => clients, now: clock.now })
    counts.begin()
    for (const standing of records.standings()) counts.add(standing)
    for (const _ of counts.countOthers(mapping));
    const total = Object.values(shown).reduce((sum, devices) => sum + devices)
    const sent = [...views.all(mapping)].filter(({ lastSeen }) => lastSeen !== null).length
    expect({ seed, ...counts.now }).toEqual({ seed, total, seen: sent, states: shown })
  }
  for (const state of deviceStateNames) expect([state, (seen.get(state) ?? 0) > 10]).toEqual([state, true])
})
