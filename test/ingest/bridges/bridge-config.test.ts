import { describe, expect, test } from 'vitest'
import { bridgesSchema } from '../../../src/ingest/bridge-kinds.ts'
import { bridgeOptions, bridgeWarnings } from '../../../src/ingest/bridges/bridge-config.ts'
import { createAuthority } from '../../support/certificates.ts'
import { parseMqttBridges } from '../../support/mqtt-bridges.ts'

const own = createAuthority().issue()

const bridge = { name: 'depot', url: 'mqtt://10.0.0.1', topics: ['a/#'], client_id: 'gw' }

function problems(...bridges: object[]): string[] {
  const { error } = bridgesSchema.safeParse(bridges)
  // Of a bridge that fits no kind: as MQTT, the first one.
  const issues = (error?.issues ?? []).flatMap((issue) =>
    issue.code === 'invalid_union'
      ? issue.errors[0]!.map(({ path, message }) => ({ path: [...issue.path, ...path], message }))
      : [issue],
  )
  return issues.map(({ path, message }) => `${path.join('.')} ${message}`)
}

describe('the config of a bridge', () => {
  test('has a stable client id for each connection', () => {
    const ids = (more: object) => parseMqttBridges([{ ...bridge, ...more }]).map(bridgeOptions)[0]!.clientIds
    expect(ids({})).toEqual(['gw'])
    expect(ids({ connections: 3, share_group: 'g' })).toEqual(['gw-1', 'gw-2', 'gw-3'])
  })

  test.each([
    ['mqtt://h', { scheme: 'mqtt', host: 'h', port: 1883, path: '/' }],
    ['mqtts://h:8884/', { scheme: 'mqtts', host: 'h', port: 8884, path: '/' }],
    ['wss://h/mqtt', { scheme: 'wss', host: 'h', port: 443, path: '/mqtt' }],
    ['ws://[::1]:9001', { scheme: 'ws', host: '::1', port: 9001, path: '/' }],
  ])('reads %s', (url, expected) => {
    expect(parseMqttBridges([{ ...bridge, url }])[0]!.url).toEqual(expected)
  })

  test.each([
    [{ url: 'mqtt://user:pw@h' }, /^0.url must be mqtt:\/\/HOST:PORT/],
    [{ url: 'http://h' }, /^0.url must be mqtt/],
    [{ url: 'mqtt://h:0' }, /^0.url must have a port of 1 to 65535, found 0/],
    [{ url: 'mqtt://h/path' }, /^0.url must have no path/],
    [{ topics: ['a/#/b'] }, /^0.topics.0 may have "\+" and "#" as whole levels only/],
    [{ topics: ['a/b+'] }, /^0.topics.0 may have/],
    [{ topics: ['a/{device}'] }, /^0.topics.0 is a filter of MQTT/],
    [{ topics: ['$share/g/a'] }, /^0.topics.0 must not begin with \$share/],
    [{ connections: 2 }, /^0.connections needs share_group/],
    [{ share_group: 'a/b' }, /^0.share_group must have no/],
    [{ leave_group_on_stop: true }, /^0.leave_group_on_stop needs share_group/],
    [{ password: 'x' }, /^0.password needs username/],
    [{ tls: { server_name: 'x' } }, /^0.tls is not allowed for mqtt:\/\//],
    [{ url: 'mqtts://h', tls: { cert: own.cert } }, /^0.tls.cert needs key, too/],
    [{ name: 'broker' }, /^0.name must be unique, and not "broker"/],
    [{ name: 'a b' }, /^0.name must have 1 to 64 letters/],
    [{ qos: 2 }, /^0.qos/],
    [{ custody: 'delivered' }, /^0.custody/],
  ])('refuses %j', (more, expected) => {
    expect(problems({ ...bridge, ...more })).toEqual([expect.stringMatching(expected)])
  })

  test('refuses one client id twice at a broker, also where a connection makes it', () => {
    const shared = { ...bridge, share_group: 'g', connections: 2 }
    expect(problems(shared, { ...bridge, name: 'other', client_id: 'gw-2' })).toEqual([
      '1.client_id must be unique at the broker: another connection is "gw-2", too',
    ])
    expect(problems(shared, { ...bridge, name: 'other', client_id: 'gw-2', url: 'mqtt://10.0.0.2' })).toEqual(
      [],
    )
  })

  test.each([
    [{}, []],
    [{ qos: 0 }, [/qos: 0/]],
    [{ session: 'clean' }, [/session: clean/]],
    [{ protocol: '3.1.1' }, [/the broker alone decides/]],
    [{ session_expiry: '5m' }, [/less than an hour/]],
    [{ username: 'u', password: 'p' }, [/without encryption/]],
    [{ username: 'u', password: 'p', url: 'mqtts://10.0.0.1' }, []],
  ])('with %j warns of what may be lost', (more, expected) => {
    const [parsed] = parseMqttBridges([{ ...bridge, ...more }])
    const found = bridgeWarnings(parsed!, () => false).map(({ what }) => what)
    expect(found).toEqual(expected.map((each) => expect.stringMatching(each)))
  })
})
