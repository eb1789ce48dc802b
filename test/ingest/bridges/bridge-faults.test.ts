import { ReasonCodes } from 'mqtt'
import { describe, expect, test } from 'vitest'
import {
  ConnectionFault,
  disconnectFault,
  faultOf,
  subscriptionFault,
  type FaultPlace,
} from '../../../src/ingest/bridges/bridge-faults/bridge-faults.ts'
import { Secret } from '../../../src/std/secret.ts'

const place: FaultPlace = {
  url: { scheme: 'mqtts', host: 'broker.example', port: 8883, path: '/' },
  tls: { ca: null, cert: null, key: null, serverName: null },
  clientId: 'gw',
  userName: 'ann',
  isVersion5: true,
  stage: 'connecting',
  isCheck: false,
  reasonString: null,
  serverReference: null,
}

const coded = (code: string, message = `raw text of ${code}`) => Object.assign(new Error(message), { code })
const refusal = (code: number) =>
  Object.assign(new Error(`Connection refused: ${ReasonCodes[code as keyof typeof ReasonCodes]}`), { code })

const codes = Object.keys(ReasonCodes).map(Number)

describe('a code of the broker', () => {
  test.each(codes.filter((code) => (code >= 1 && code <= 5) || code >= 128))(
    '%i is said as cause and cure, in CONNACK, DISCONNECT and SUBACK',
    (code) => {
      const faults = [faultOf(refusal(code), place)]
      // 3.1.1 has codes in CONNACK only.
      if (code >= 128) {
        faults.push(disconnectFault(code, { ...place, stage: 'open' }))
        faults.push(subscriptionFault([{ filter: 't/#', code }], place)!)
      }
      for (const { detail, act } of faults) {
        expect(detail).not.toMatch(/with code/)
        expect(detail).toMatch(/^[A-Z].+\.$/)
        expect(act).toMatch(/^[A-Z].+\.$/)
        expect(detail).not.toContain('Connection refused')
      }
    },
  )

  test('has the words of the broker, quoted, and the other server', () => {
    const told = { ...place, reasonString: 'quota\nof plan "S"', serverReference: 'eu.example:8883' }
    expect(faultOf(refusal(151), told).detail).toBe(
      'A quota of the broker is used up. It says "quota\\nof plan \\"S\\"".',
    )
    expect(faultOf(refusal(156), told).detail).toContain('"eu.example:8883"')
    expect(disconnectFault(0x8f, told).act).toContain('`topics`')
  })

  test('says what is missing where the bridge has no user name', () => {
    expect(faultOf(refusal(134), { ...place, userName: null }).act).toMatch(
      /^The bridge has no user name\. Set/,
    )
  })
})

describe('an error', () => {
  const open = { ...place, stage: 'open' } as const
  const withCert = { ...place, tls: { ...place.tls, cert: 'pem', key: new Secret('k') } }
  const subscribing = { ...place, stage: 'subscribing' } as const
  const badFlags = new Error('Invalid header flag bits, must be 0x0 for puback packet')
  const several = new AggregateError([
    Object.assign(coded('ENETUNREACH'), { address: '2001:db8::1', port: 8883 }),
    Object.assign(coded('ETIMEDOUT'), { address: '192.0.2.1', port: 8883 }),
  ])
  const tried = /no answer .*\(tried \[2001:db8::1\]:8883 ENETUNREACH, 192\.0\.2\.1:8883 ETIMEDOUT\)/
  const ofTls = (code: string) => coded(`ERR_${code}`)

  // What bridge-check and client-certificates show at servers is not here.
  test.each<[unknown, FaultPlace, reason: string, detail: RegExp]>([
    [coded('EAI_AGAIN'), place, 'unreachable', /cannot be resolved/],
    [coded('EHOSTUNREACH'), place, 'unreachable', /no network route/],
    [several, place, 'unreachable', tried],
    [coded('EACCES'), place, 'unreachable', /does not allow/],
    [ofTls('SSL_SSL/TLS_ALERT_BAD_CERTIFICATE'), withCert, 'tls_failed', /refuses the certificate/],
    [ofTls('SSL_TLSV1_ALERT_PROTOCOL_VERSION'), place, 'tls_failed', /TLS 1\.2 and 1\.3/],
    [coded('CERT_HAS_EXPIRED'), place, 'tls_failed', /has expired/],
    [ofTls('OSSL_PEM_NO_START_LINE'), withCert, 'tls_failed', /cannot be read/],
    [ofTls('SSL_SOMETHING_NEW'), place, 'tls_failed', /TLS connection cannot be made/],
    [badFlags, open, 'malformed_packet', /breaks the protocol/],
    [new Error('Keepalive timeout'), open, 'connection_lost', /did not answer PINGREQ/],
    [coded('ECONNRESET'), open, 'connection_lost', /closed by the broker or the network/],
    [new ConnectionFault('CLOSED'), subscribing, 'connection_lost', /closes it at the subscription/],
    [coded('ESOMETHING', 'odd thing'), place, 'unreachable', /failed \(ESOMETHING\): "odd thing"/],
  ])('%s has a reason, a cause and a cure', (error, at, reason, detail) => {
    const fault = faultOf(error, at)
    expect(fault.reason).toBe(reason)
    expect(fault.detail).toMatch(detail)
    expect(fault.detail).not.toMatch(/raw text|Invalid header|Keepalive timeout/)
    expect(fault.detail).toMatch(/\.$/)
    expect(fault.act).toMatch(/^[A-Z].+\.$/)
  })
})
