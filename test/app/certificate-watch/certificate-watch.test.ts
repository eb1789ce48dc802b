import { describe, expect, test } from 'vitest'
import { createCertificateWatch } from '../../../src/app/certificate-watch/certificate-watch.ts'
import { certificatesOf, certificateWarnings, type Config } from '../../../src/config/config.ts'
import { deliverySchema } from '../../../src/delivery/config.ts'
import { ingestSchema } from '../../../src/ingest/config.ts'
import { opsSchema } from '../../../src/ops/config.ts'
import { createAuthority, type Certificate } from '../../support/certificates.ts'
import { createFakeClock, fakeStartMs } from '../../support/fake-clock.ts'

const dayMs = 86_400_000
const authority = createAuthority()

/** Seconds are the precision of a certificate. */
const at = (days: number) => new Date(fakeStartMs + days * dayMs)

function issue(fromDays: number, untilDays: number, names?: string[]): Certificate {
  return authority.issue({ from: at(fromDays), until: at(untilDays), ...(names && { names }) })
}

function configWith(
  tls: Certificate,
  { ops, url = 'mqtts://0.0.0.0:8883' }: { ops?: Certificate; url?: string } = {},
) {
  return {
    ingest: ingestSchema.parse({
      broker: { listeners: [{ url, tls }], access: { users: [{ name: 'a', password: 'x' }] } },
    }),
    ops: opsSchema.parse({ ...(ops && { tls: ops }) }),
    delivery: deliverySchema.parse({ base_url: 'https://service.example' }),
  } as Config
}

describe('a certificate of the config', () => {
  test.each([
    [issue(-90, -1), [/listener mqtts:\/\/0.0.0.0:8883 \(CN=localhost\) has expired at 2/]],
    [issue(-90, 29), [/is valid until 2/]],
    [issue(1, 90), [/is not valid before 2/]],
    [issue(-90, 31), []],
  ])('is named by check when it has expired or ends within 30 days (%#)', (tls, expected) => {
    const found = certificateWarnings(configWith(tls), fakeStartMs).map(({ what }) => what)
    expect(found).toEqual(expected.map((each) => expect.stringMatching(each)))
  })

  test('ends with the first of its chain', () => {
    const [leaf, middle] = [issue(-90, 90), issue(-90, 5, ['middle'])]
    const chain = { cert: `${leaf.cert}${middle.cert}`, key: leaf.key }
    expect(certificatesOf(configWith(chain))).toMatchObject([{ subject: 'CN=middle', use: 'listener' }])
  })

  test('that does not name the address of its listener is noted', () => {
    const hostOf = (url: string) => certificatesOf(configWith(issue(-1, 90), { url }))[0]?.otherHost
    expect(hostOf('mqtts://0.0.0.0')).toBe(null)
    expect(hostOf('mqtts://localhost')).toBe(null)
    expect(hostOf('mqtts://10.0.0.7')).toBe('10.0.0.7')
    expect(hostOf('mqtts://gateway.example.org')).toBe('gateway.example.org')
  })
})

describe('while the gateway runs', () => {
  test('it is a state 14 days before its end, worse from its end on, and none when it is renewed', async () => {
    const clock = createFakeClock()
    const good = issue(-1, 400)
    const watch = createCertificateWatch(
      { clock, clients: () => [] },
      configWith(issue(-90, 15), { ops: good }),
    )
    const states = () => [...watch.states()]
    expect(states()).toEqual([])
    await clock.advance(dayMs + 1000)
    const found = { code: 'CERTIFICATE_EXPIRES', certificate: 'listener mqtts://0.0.0.0:8883' }
    expect(states()).toMatchObject([{ ...found, endsSoon: true }])
    await clock.advance(14 * dayMs)
    expect(states()).toMatchObject([{ ...found, endsSoon: false }])
    watch.use(configWith(good))
    expect(states()).toEqual([])
  })

  test('client certificates are one state from 30 days before the end of the first to 30 days after', async () => {
    const clock = createFakeClock()
    const endsIn = (clientId: string, days: number, from = -365) => ({
      clientId,
      certificate: { startsAt: fakeStartMs + from * dayMs, endsAt: fakeStartMs + days * dayMs },
    })
    // That of the bus lives for 24 days, and is renewed in the last eight.
    const clients = [
      endsIn('truck-8', 45),
      endsIn('truck-7', 35),
      { clientId: 'van', certificate: null },
      endsIn('bus', 45, 21),
    ]
    const watch = createCertificateWatch({ clock, clients: () => clients }, configWith(issue(-1, 400)))
    const stateAfter = async (days: number) => {
      await clock.advance(days * dayMs)
      return [...watch.states()].map((state) => {
        if (state.code !== 'CLIENT_CERTIFICATES_EXPIRE') throw new Error(state.code)
        return [state.clients.map(({ clientId }) => clientId), state.total, state.expired]
      })
    }
    expect(await stateAfter(0)).toEqual([])
    expect(await stateAfter(6)).toEqual([[['truck-7'], 1, 0]])
    expect(await stateAfter(10)).toEqual([[['truck-7', 'truck-8'], 2, 0]])
    expect(await stateAfter(20)).toEqual([[['truck-7', 'truck-8'], 2, 1]])
    expect(await stateAfter(2)).toEqual([[['truck-7', 'truck-8', 'bus'], 3, 1]])
    // Renewed.
    clients.splice(1, 1, endsIn('truck-7', 400))
    expect(await stateAfter(1)).toEqual([[['truck-8', 'bus'], 2, 0]])
    expect(await stateAfter(15)).toEqual([[['truck-8'], 1, 1]])
    expect(await stateAfter(30)).toEqual([])
  })
})
