import { describe, expect, test } from 'vitest'
import type { EventOf } from '../../../src/domain/event.ts'
import {
  refusals,
  type ClientDropReason,
  type RefusalReason,
} from '../../../src/ingest/broker/client-faults.ts'
import { RefusalReport } from '../../../src/ingest/broker/refusal-report.ts'
import { createFakeClock } from '../../support/fake-clock.ts'

type Known = {
  clientId: string
  address: string | null
  state: 'connected' | 'lost'
  certificate: null
}
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
  Array.from({ length }, (_, n) => ({
    clientId: `truck-${n}`,
    address: `10.0.1.${n}`,
    state,
    certificate: null,
  }))

const lost = fleet('lost')
const unknown: Known[] = []
const noName: RefusalReason = 'no_user_name'

describe('clients that are refused for one reason are reported', () => {
  test.each<[string, Known[], RefusalReason, (n: number) => string, number, Partial<Refused>]>([
    [
      'the whole known fleet',
      lost,
      'will_retain',
      (n) => `truck-${n}`,
      25,
      { knownRefused: 25, wholeFleet: true },
    ],
    ['two of two', unknown, noName, (n) => `truck-${n}`, 2, { clients: 2, known: 0, wholeFleet: true }],
    ['a memory of 10,000', unknown, noName, (n) => `stranger-${n}`, 10_005, { clients: 10_000 }],
    ['strangers', lost, noName, (n) => `stranger-${n}`, 100, { knownRefused: 0, wholeFleet: false }],
    [
      'ids of connected clients',
      fleet('connected'),
      'client_id_in_use',
      (n) => `truck-${n}`,
      25,
      { knownRefused: 0, wholeFleet: false },
    ],
  ])('%s', async (_what, admitted, reason, clientIdOf, count, expected) => {
    const { clock, events, refuse } = world(admitted)
    for (let n = 0; n < count; n += 1) refuse(reason, clientIdOf(n))
    await clock.advance(10_000)
    expect(events).toMatchObject([
      { reason, count, clientId: clientIdOf(0), address: '10.0.0.1', ...expected },
    ])
  })

  test('with what to do, and by their address, where TLS refuses them before they have a client id', async () => {
    const { clock, events, refuse } = world(lost)
    for (let n = 0; n < 25; n += 1) refuse('tls_client_certificate_weak', null, `10.0.1.${n}`)
    for (let n = 0; n < 25; n += 1) refuse('no_user_name', `truck-${n}`)
    await clock.advance(10_000)
    const act = expect.stringContaining('Set user name and password')
    const whole = { clients: 25, knownRefused: 25, known: 25, wholeFleet: true }
    expect(events).toMatchObject([whole, { ...whole, act }])
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

  test('not any more when the listeners are closed', async () => {
    const { clock, events, refuse, close } = world()
    for (let n = 0; n < 25; n += 1) refuse('no_user_name', `truck-${n}`)
    close()
    await clock.advance(10_000)
    expect(events).toEqual([])
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
      'wills_full',
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
