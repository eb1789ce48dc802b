import { describe, expect, test } from 'vitest'
import type { EventOf } from '../../../src/domain/event.ts'
import {
  refusals,
  type ClientDropReason,
  type RefusalReason,
} from '../../../src/ingest/broker/client-faults.ts'
import { RefusalReport } from '../../../src/ingest/broker/refusal-report.ts'
import { createFakeClock } from '../../support/fake-clock.ts'

type Known = { clientId: string; address: string | null; state: 'connected' | 'lost' }
type Refused = EventOf<'clients_refused'>

function world(admitted: Known[] = []) {
  const clock = createFakeClock()
  const events: Refused[] = []
  const report = new RefusalReport({
    clock,
    emit: (event) => void events.push(event as Refused),
    clients: { admitted: () => admitted },
  })
  const refuse = (reason: RefusalReason | ClientDropReason, clientId: string | null, address = '10.0.0.1') =>
    report.add(reason, 'the reason in words', { clientId, userName: null, address })
  return { clock, events, refuse, close: () => report.close() }
}

const fleet = (state: Known['state'], length = 25): Known[] =>
  Array.from({ length }, (_, n) => ({ clientId: `truck-${n}`, address: `10.0.1.${n}`, state }))

describe('clients that are refused for one reason are reported', () => {
  test('the whole known fleet, with its number and an example', async () => {
    const { clock, events, refuse } = world(fleet('lost'))
    for (let n = 0; n < 25; n += 1) refuse('will_retain', `truck-${n}`)
    await clock.advance(10_000)
    expect(events).toMatchObject([
      { reason: 'will_retain', count: 25, clients: 25, known: 25, knownRefused: 25, wholeFleet: true },
    ])
    expect(events[0]).toMatchObject({ clientId: 'truck-0', userName: null, address: '10.0.0.1', act: null })
  })

  test('by their address, where TLS refuses them before they have a client id', async () => {
    const { clock, events, refuse } = world(fleet('lost'))
    for (let n = 0; n < 25; n += 1) refuse('tls_client_certificate_weak', null, `10.0.1.${n}`)
    await clock.advance(10_000)
    expect(events).toMatchObject([{ clients: 25, knownRefused: 25, wholeFleet: true }])
  })

  test('two of two where none was ever admitted, after one try of each', async () => {
    const { clock, events, refuse } = world()
    refuse('no_user_name', 'truck-1')
    refuse('no_user_name', 'truck-2')
    await clock.advance(10_000)
    const act = expect.stringContaining('Set user name and password')
    expect(events).toMatchObject([{ clients: 2, known: 0, wholeFleet: true, act }])
  })

  test('once in ten seconds, with those since the last report, for as long as it lasts', async () => {
    const { clock, events, refuse } = world(fleet('lost'))
    for (let s = 0; s < 30; s += 1) {
      for (let n = 0; n < 2; n += 1) refuse('will_retain', `truck-${(2 * s + n) % 25}`)
      await clock.advance(1000)
    }
    expect(events.map(({ count }) => count)).toEqual([10, 20, 20])
    expect(events.map(({ clients }) => clients)).toEqual([10, 25, 25])
  })

  test('in a memory of 10,000 clients, and all connections', async () => {
    const { clock, events, refuse } = world()
    for (let n = 0; n < 10_005; n += 1) refuse('no_user_name', `stranger-${n}`)
    await clock.advance(10_000)
    expect(events).toMatchObject([{ count: 10_005, clients: 10_000 }])
  })

  test('not any more when the listeners are closed', async () => {
    const { clock, events, refuse, close } = world()
    for (let n = 0; n < 25; n += 1) refuse('no_user_name', `truck-${n}`)
    close()
    await clock.advance(10_000)
    expect(events).toEqual([])
  })

  test('strangers are no fleet, however many ids they invent', async () => {
    const { clock, events, refuse } = world(fleet('lost'))
    for (let n = 0; n < 100; n += 1) refuse('no_user_name', `stranger-${n}`)
    await clock.advance(10_000)
    expect(events).toMatchObject([{ clients: 100, knownRefused: 0, wholeFleet: false }])
  })

  test('nor are they where they use the ids of connected clients', async () => {
    const { clock, events, refuse } = world(fleet('connected'))
    for (let n = 0; n < 25; n += 1) refuse('client_id_in_use', `truck-${n}`)
    await clock.advance(10_000)
    expect(events).toMatchObject([{ knownRefused: 0, wholeFleet: false }])
  })

  test('a single stranger is reported from its tenth connection on, and is no fleet', async () => {
    const { clock, events, refuse } = world()
    for (let n = 0; n < 9; n += 1) refuse('no_user_name', 'stranger')
    await clock.advance(10_000)
    expect(events).toEqual([])
    refuse('no_user_name', 'stranger')
    await clock.advance(10_000)
    expect(events).toMatchObject([{ count: 10, clients: 1, wholeFleet: false }])
  })

  test('the counts begin again after ten minutes without a refusal', async () => {
    const { clock, events, refuse } = world()
    for (let n = 0; n < 8; n += 1) refuse('no_user_name', 'stranger')
    await clock.advance(599_000)
    refuse('no_user_name', 'stranger')
    await clock.advance(600_000)
    refuse('no_user_name', 'stranger')
    await clock.advance(10_000)
    expect(events).toEqual([])
    for (let n = 0; n < 8; n += 1) refuse('no_user_name', 'stranger')
    await clock.advance(579_000)
    refuse('no_user_name', 'stranger')
    await clock.advance(10_000)
    expect(events).toMatchObject([{ count: 10 }])
  })

  test('reasons that another condition tells are not told twice', async () => {
    const { clock, events, refuse } = world()
    for (const reason of Object.keys(refusals) as RefusalReason[])
      for (let n = 0; n < 10; n += 1) refuse(reason, `truck-${n}`)
    await clock.advance(10_000)
    expect(events.map(({ reason }) => reason).sort()).toEqual([
      'authentication_method',
      'client_id_in_use',
      'client_id_too_long',
      'no_client_id',
      'no_user_name',
      'passwords_busy',
      'session_not_stored',
      'tls_client_certificate_expired',
      'tls_client_certificate_missing',
      'tls_client_certificate_purpose',
      'tls_client_certificate_revoked',
      'tls_client_certificate_untrusted',
      'tls_client_certificate_weak',
      'will_retain',
    ])
  })
})

test('connections that end by their CONNECT are reported, and those without one are not', async () => {
  const { clock, events, refuse } = world()
  const beforeConnack: ClientDropReason[] = ['tls_on_plain_port', 'connect_too_large', 'bad_will_topic']
  const elsewhere: ClientDropReason[] = ['partial_packets_full', 'connect_timeout']
  for (const reason of [...beforeConnack, ...elsewhere])
    for (let n = 0; n < 10; n += 1) refuse(reason, null, `10.0.1.${n}`)
  await clock.advance(10_000)
  expect(events.map(({ reason }) => reason)).toEqual(beforeConnack)
})
