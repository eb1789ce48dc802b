// withdrawal.ts: which open connections a renewal of the rules or of the authorities of certificates ends.
// A connection stays open while what its client proved would admit it today: its user with the same password,
// its token, its certificate, or no proof where none is needed.
//
// A file that was cut, or written by mistake, must not shut a fleet out. So a renewal that leaves no user of
// a file with users, or ends the connections of more than half of the clients that proved something, is
// refused until a person confirms it (`reload --yes`). One client of one alone is more than half. The same
// holds for those of one listener, from three on: its file may be one of several. Who needs no proof says
// nothing of a file, so a depot of anonymous vans does not hide that all trucks are shut out.

import type { X509Certificate } from 'node:crypto'
import { GatewayError } from '../../../std/gateway-error.ts'
import { plural } from '../../../std/quantity.ts'
import { quote } from '../../../std/quote.ts'
import type { CertificateCheck } from './certificate-check.ts'
import type { Proof } from './users.ts'

/** `free`: without a user name, by its certificate where it has one and the rules ask for one. */
export type AdmittedBy =
  { kind: 'free'; hasCertificate: boolean } | { kind: 'user'; name: string; proof: Proof }

/** An open connection that was admitted. */
export type Holder = {
  /** The number of its listener. */
  readonly listener: number
  readonly admittedBy: AdmittedBy
  readonly clientId: string
  /** What TLS knows of the client; null without TLS. */
  readonly peerCertificate: (() => X509Certificate | undefined) | null
}

export type NextRules = {
  mayStay(holder: Holder): boolean
  /** Listeners that have no user any more and had some. */
  emptied: readonly number[]
}

const shownMax = 3
const fewestOfListener = 3

/** Those whose connections end. Throws ACCESS_WITHDRAWN, unless `isConfirmed`. */
export function withdrawnOf<One extends Holder>(
  holders: readonly One[],
  { mayStay, emptied }: NextRules,
  {
    certificateChecks,
    isConfirmed,
  }: {
    /** Of each listener whose authorities or revocation lists changed. */
    certificateChecks: ReadonlyMap<number, CertificateCheck>
    isConfirmed: boolean
  },
): One[] {
  const withdrawn = holders.filter((holder) => {
    const check = certificateChecks.get(holder.listener)
    const certificate = check && holder.peerCertificate?.()
    return !mayStay(holder) || (certificate !== undefined && check?.(certificate) === false)
  })
  if (isConfirmed) return withdrawn
  if (emptied.length > 0) throw refusal('no user is left where there were some')
  const ends = new Set(withdrawn)
  const asked = holders.filter((holder) => ends.has(holder) || isAsked(holder))
  refuseMost(asked, ends, 1)
  for (const group of Map.groupBy(asked, ({ listener }) => listener).values())
    refuseMost(group, ends, fewestOfListener)
  return withdrawn
}

function isAsked({ admittedBy }: Holder): boolean {
  return admittedBy.kind === 'user' || admittedBy.hasCertificate
}

/** `fewest`: less are never too many. */
function refuseMost(holders: readonly Holder[], ends: ReadonlySet<Holder>, fewest: number): void {
  const ended = holders.filter((holder) => ends.has(holder))
  if (ended.length < fewest || ended.length * 2 <= holders.length) return
  const names = ended.slice(0, shownMax).map(({ clientId }) => quote(clientId, 64))
  throw refusal(
    `${plural(ended.length, 'connected client')} of ${holders.length} may not connect any more, ` +
      `such as ${names.join(', ')}`,
  )
}

function refusal(what: string): GatewayError {
  return new GatewayError('ACCESS_WITHDRAWN', {
    what: `The new users or authorities are not in force: ${what}.`,
    why: 'A file that was cut or replaced by mistake would shut the fleet out.',
    act: 'Correct the file. If it is meant, put it in force with `telemetry-gateway reload --yes`.',
  })
}
