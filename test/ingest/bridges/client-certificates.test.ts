// Bridges to a Mosquitto that requires a client certificate, over TLS and WebSocket: the check names the cause where the
// certificate or the port is wrong, and the running bridge has a fault and no connection.

import { describe, expect, test } from 'vitest'
import { bridgeOptions } from '../../../src/ingest/bridges/bridge-config.ts'
import { checkBridge } from '../../../src/ingest/bridges/bridges.ts'
import { createAuthority } from '../../support/certificates.ts'
import { eventually } from '../../support/eventually.ts'
import { openIngest } from '../../support/ingest-world.ts'
import { createMemoryIntakeSpool } from '../../support/memory-intake-spool.ts'
import { hasMosquitto, startMosquitto } from '../../support/mosquitto.ts'
import { parseMqttBridges } from '../../support/mqtt-bridges.ts'

const dayMs = 86_400_000
const never = new AbortController().signal
const daysFromNow = (days: number) => new Date(Date.now() + days * dayMs)

const authority = createAuthority()
const another = createAuthority('Another Authority')
const names = ['gateway']
const own = { ca: authority.ca, ...authority.issue({ names }) }
const ofAnother = { ca: authority.ca, ...another.issue({ names }) }
const expired = {
  ca: authority.ca,
  ...authority.issue({ names, from: daysFromNow(-9), until: daysFromNow(-1) }),
}
const ofTomorrow = {
  ca: authority.ca,
  ...authority.issue({ names, from: daysFromNow(1), until: daysFromNow(9) }),
}
const revoked = { ca: authority.ca, ...authority.issue({ names }) }
const none = { ca: authority.ca }
const brokerOfAnother = { ...own, ca: another.ca }

const requires = [
  'cafile %d/ca.pem',
  'certfile %d/cert.pem',
  'keyfile %d/key.pem',
  'crlfile %d/crl.pem',
  'require_certificate true',
]

async function startBroker() {
  const server = authority.issue()
  const { ports } = await startMosquitto({
    listeners: [requires, [...requires, 'protocol websockets'], ['protocol websockets']],
    files: {
      'ca.pem': authority.ca,
      'crl.pem': authority.revoke([revoked]),
      'cert.pem': server.cert,
      'key.pem': server.key,
    },
  })
  const [tls = 0, wss = 0, ws = 0] = ports
  return { tls, wss, ws }
}

type Broker = Awaited<ReturnType<typeof startBroker>>

type Row = { about: string; tls?: object; url: (broker: Broker) => string; why: RegExp; act: RegExp }

const tlsUrl = ({ tls }: Broker) => `mqtts://localhost:${tls}`
const wssUrl = ({ wss }: Broker) => `wss://localhost:${wss}/mqtt`
const requiresOne = /^The broker requires a certificate of the gateway/
const refusesIt = /^The broker refuses the certificate of the gateway/
const notSigned = /not signed by the authority in `tls\.ca`/
const setOne = /`tls.cert` and `tls.key`/

const certificates: Omit<Row, 'url'>[] = [
  { about: 'no certificate', tls: none, why: requiresOne, act: setOne },
  { about: 'one of another authority', tls: ofAnother, why: refusesIt, act: setOne },
  { about: 'an expired one', tls: expired, why: /gateway has expired/, act: /Renew the certificate/ },
  { about: 'one that begins tomorrow', tls: ofTomorrow, why: refusesIt, act: /valid now/ },
  { about: 'a revoked one', tls: revoked, why: /is revoked/, act: /new certificate/ },
  { about: 'another authority of the broker', tls: brokerOfAnother, why: notSigned, act: /`tls.ca`/ },
]

const notMqtt = { why: /is not MQTT/, act: /WebSocket/ }
const rows: Row[] = [
  ...certificates.map((row) => ({ ...row, url: tlsUrl })),
  // For WebSocket Mosquitto does not look at `crlfile`.
  ...certificates
    .filter(({ tls }) => tls !== revoked)
    .map((row) => ({ ...row, about: `${row.about}, by wss`, url: wssUrl })),
  { about: 'mqtt:// to a port for WebSocket', url: ({ ws }) => `mqtt://localhost:${ws}`, ...notMqtt },
  { about: 'mqtts:// to wss://', tls: own, url: ({ wss }) => `mqtts://localhost:${wss}`, ...notMqtt },
  {
    about: 'wss:// to a port for ws://',
    tls: own,
    url: ({ ws }) => `wss://localhost:${ws}/mqtt`,
    why: /There is no TLS/,
    act: /for TLS/,
  },
  {
    about: 'wss:// to a port for mqtts://',
    tls: own,
    url: ({ tls }) => `wss://localhost:${tls}`,
    why: /closes the connection/,
    act: /`url`/,
  },
]

test.each([
  [
    'the key of another certificate',
    { ...own, key: revoked.key },
    'the key does not belong to the certificate',
  ],
  [
    'a key that OpenSSL finds too small',
    createAuthority().issue({ rsaBits: 1024 }),
    'its key is too small, and OpenSSL does not accept it: use RSA with 2048 bits or more',
  ],
  ['a text that is no PEM', { ...own, cert: 'gateway.pem' }, 'must be a certificate as PEM'],
])('the config of a bridge is refused with %s', (_about, tls, why) => {
  for (const url of ['mqtts://localhost', 'wss://localhost/mqtt'])
    expect(() => parseMqttBridges([{ name: 'depot', topics: ['t/#'], url, tls }])).toThrow(why)
})

describe.skipIf(!hasMosquitto)('a bridge to a Mosquitto that requires client certificates', () => {
  test('has a fault and no connection where the certificate is wrong, and the check says what to do', async () => {
    const broker = await startBroker()
    const findings = await Promise.all(
      rows.map(async ({ about, tls, url, why, act }) => {
        const [config] = parseMqttBridges([
          { name: 'depot', topics: ['t/#'], client_id: about, url: url(broker), tls, connect_timeout: '5s' },
        ])
        const finding = await checkBridge(config!, never)
        return {
          about,
          state: finding.state,
          why: why.test(finding.why ?? '') ? 'as expected' : finding.why,
          act: act.test(finding.act ?? '') ? 'as expected' : finding.act,
        }
      }),
    )
    expect(findings).toEqual(
      rows.map(({ about }) => ({ about, state: 'failed', why: 'as expected', act: 'as expected' })),
    )
    const bridges = parseMqttBridges(
      rows.map(({ tls, url }, index) => ({
        name: `b${index}`,
        topics: ['t/#'],
        client_id: `b${index}`,
        url: url(broker),
        tls,
      })),
    )
    await using world = await openIngest(createMemoryIntakeSpool({ commits: 'auto' }), {
      bridges: bridges.map(bridgeOptions),
    })
    const links = () => world.ingest.messageSources().flatMap((source) => source.links)
    await eventually(() => links().every(({ losses }) => losses > 0))
    expect(links().filter(({ sessionPresent }) => sessionPresent !== null)).toEqual([])
    expect(links().filter(({ lastFault }) => lastFault === null)).toEqual([])
  })
})
