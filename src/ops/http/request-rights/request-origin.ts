// request-origin.ts: requests that a browser sends for a web page of another site. Each is refused, whatever
// its path.
//
//   Host             A page can let its own name resolve to this machine (DNS rebinding) and then read the
//                    answers. So the name in the request must be one that belongs to this machine. An address
//                    is no name: it is never refused, and may be the one in front of a mapped port.
//   Sec-Fetch-Site   Every current browser says here whether the request comes from another site.
//   Origin           Says the same, also in older browsers, for the requests that can change something.
//
// A link of another site, as in an e-mail that is read in the browser, may open a page (isForeignLink): the
// person sees where he is, the other site cannot read the answer or put it into a frame, and a GET changes
// nothing.

import type { IncomingMessage } from 'node:http'
import { quote } from '../../../std/quote.ts'
import { hostIn, isOwnHost, isSameOrigin } from '../../../std/loopback.ts'

export type ForeignRequest = { reason: 'host' | 'cross_site' | 'malformed'; why: string }

/**
 * Null where the request may come from this machine or from a program of the operator. `isProbe`: of a path
 * for probes. `isPage`: of one for persons.
 */
export function foreignIn(
  request: IncomingMessage,
  { allowedHosts, isProbe, isPage }: { allowedHosts: ReadonlySet<string>; isProbe: boolean; isPage: boolean },
): ForeignRequest | null {
  const { headers, url = '' } = request
  if (!url.startsWith('/')) return { reason: 'malformed', why: 'Its target is not a path.' }
  // Health checks of some load balancers. Browsers speak HTTP/1.1 and always name a host.
  const isOldProbe = isProbe && request.httpVersion === '1.0' && headers.host === undefined
  const wrongHost = isOldProbe ? null : hostProblem(request, allowedHosts)
  if (wrongHost !== null) return { reason: 'host', why: wrongHost }
  const site = headers['sec-fetch-site']
  if (isPage && isForeignLink(request)) return null
  if (site !== undefined && site !== 'same-origin' && site !== 'none')
    return { reason: 'cross_site', why: 'A browser sends it for a page of another site (Sec-Fetch-Site).' }
  const { origin } = headers
  if (origin !== undefined && !isSameOrigin(origin, headers.host ?? ''))
    return { reason: 'cross_site', why: 'A browser sends it for a page of another site (Origin).' }
  return null
}

/** By browsers that say so: a whole page of its own, by GET, without `Origin`. */
export function isForeignLink({ method, headers }: IncomingMessage): boolean {
  const site = headers['sec-fetch-site']
  return (
    method === 'GET' &&
    (site === 'cross-site' || site === 'same-site') &&
    headers['sec-fetch-mode'] === 'navigate' &&
    headers['sec-fetch-dest'] === 'document' &&
    headers.origin === undefined
  )
}

function hostProblem(request: IncomingMessage, allowedHosts: ReadonlySet<string>): string | null {
  const hosts = request.headersDistinct['host'] ?? []
  const host = hostIn(hosts[0] ?? '')
  if (hosts.length !== 1 || host === null) return 'It must have one header `Host` with a name and a port.'
  if (isOwnHost(host, allowedHosts)) return null
  return `The name ${quote(host, 100)} in its header \`Host\` is not allowed.`
}
