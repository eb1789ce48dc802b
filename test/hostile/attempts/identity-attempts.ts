// identity-attempts.ts: attempts at listeners with rules of their own: tokens on the plain one, client certificates
// on the other. None of them takes the users of the first listeners.

import { createAuthority, type Certificate } from '../../support/certificates.ts'
import { fleetUser, token, type HostileWorld } from '../hostile-world.ts'
import { tryMqtt, type Attempt, type Trial } from './attempt.ts'

const stranger = 'a stranger'
const refused = 'CONNACK 4, closed (bad_credentials)'

function atTokens(who: string, what: string, expected: string, connect: Trial['connect']): Attempt {
  return {
    who,
    where: 'mqtt',
    what,
    expected,
    only: ['tcp'],
    act: (world) => tryMqtt(world, 'tcp', { port: world.strictPort('tcp'), connect: connect ?? {} }),
  }
}

const user = (username: string, password = '') => ({ username, password: Buffer.from(password) })

const tokens: readonly Attempt[] = [
  atTokens('a tracker', 'gives its token', 'CONNACK 0, alive', user(token.token)),
  atTokens(stranger, 'gives no user name', 'CONNACK 5, closed (no_user_name)', {}),
  atTokens(stranger, 'gives the name of a token', refused, user(token.name)),
  atTokens(
    stranger,
    'gives a token with another last character',
    refused,
    user(token.token.replace(/.$/, 'x')),
  ),
  atTokens(stranger, 'gives the first half of a token', refused, user(token.token.slice(0, 14))),
  atTokens(
    'a client of the fleet',
    'gives its password to a listener that does not know it',
    refused,
    user(fleetUser.name, fleetUser.password),
  ),
]

function atCertificates(
  who: string,
  what: string,
  expected: string,
  certificateOf: (world: HostileWorld) => Certificate | null,
): Attempt {
  return {
    who,
    where: 'mqtt',
    what,
    expected,
    only: ['tls'],
    act(world) {
      const certificate = certificateOf(world)
      const trial = { port: world.strictPort('tls'), connect: {} }
      return tryMqtt(world, 'tls', certificate === null ? trial : { ...trial, certificate })
    },
  }
}

const hourMs = 3_600_000
const certificates: readonly Attempt[] = [
  atCertificates('a tracker', 'shows its certificate', 'CONNACK 0, alive', ({ clientAuthority }) =>
    clientAuthority.issue({ names: ['tracker-8'] }),
  ),
  atCertificates(stranger, 'shows no certificate', 'closed (tls_client_certificate_missing)', () => null),
  atCertificates(
    stranger,
    'shows a certificate of another authority with the same name',
    'closed (tls_client_certificate_untrusted)',
    () => createAuthority('Client Authority').issue({ names: ['tracker-8'] }),
  ),
  atCertificates(
    stranger,
    'shows a certificate that has expired',
    'closed (tls_client_certificate_expired)',
    ({ clientAuthority }) =>
      clientAuthority.issue({ names: ['tracker-8'], until: new Date(Date.now() - hourMs) }),
  ),
  atCertificates(
    stranger,
    'shows a certificate that is not valid yet',
    'closed (tls_client_certificate_untrusted)',
    ({ clientAuthority }) =>
      clientAuthority.issue({ names: ['tracker-8'], from: new Date(Date.now() + hourMs) }),
  ),
]

export const identityAttempts: readonly Attempt[] = [...tokens, ...certificates]
