// service-checks.ts: the way to the service of each provider: name, proxy, connection, certificate, clock,
// the keys and what they sign. Nothing is sent to it with a signature without --signed-request.
//
// The check of our own signature sends one request to a sandbox of this process, which verifies it with code
// of its own: a failure there is a fault of the keys or of the gateway, and not of the account.

import { systemClock } from '../../std/clock.ts'
import { GatewayError } from '../../std/gateway-error.ts'
import { isLoopback } from '../../std/loopback.ts'
import type { Config } from '../../config/config.ts'
import { deliveryOptions } from '../../delivery/config.ts'
import {
  checkConnection,
  findSigningKeys,
  sendSignedRequest,
  type SigningKeys,
} from '../../delivery/delivery.ts'
import { newRandomId } from '../../domain/ids.ts'
import type { Outcome } from '../../domain/outcome.ts'
import { createSandbox } from '../../sandbox/sandbox.ts'
import { connectionsOf, type Provider } from '../check-command/connection-findings.ts'
import { accountIn } from './account-number.ts'
import { fromStep, type DoctorFinding } from './doctor-finding.ts'

type Io = { env: NodeJS.ProcessEnv; stop: AbortSignal }

export async function* checkServices(
  config: Config,
  io: Io,
  { signedRequest }: { signedRequest: boolean },
): AsyncGenerator<DoctorFinding> {
  const { providers } = deliveryOptions(config.delivery)
  for (const [first, names] of connectionsOf(providers)) yield* checkWay(first, names, io)
  for (const provider of providers) {
    const { keys, finding } = await checkKeys(provider, io)
    yield finding
    if (keys === null) continue
    yield await checkOwnSignature(provider, keys, io)
    if (signedRequest) yield await checkSignedRequest(provider, keys, io)
  }
  if (!signedRequest) {
    const what = 'No signed request was sent. --signed-request sends one without effect to each provider.'
    yield { name: 'service', state: 'skipped', what }
  }
}

async function* checkWay(
  provider: Provider,
  providers: readonly string[],
  io: Io,
): AsyncGenerator<DoctorFinding> {
  let isProxied = false
  for await (const step of checkConnection(provider, io)) {
    if (step.name === 'proxy') isProxied = true
    yield fromStep(step, providers)
  }
  if (!isProxied) yield { name: 'proxy', state: 'ok', what: 'The connection uses no proxy.', providers }
  const { protocol, hostname } = new URL(provider.baseUrl)
  if (protocol === 'http:' && !isLoopback(hostname.replace(/^\[|\]$/g, '')))
    yield {
      name: 'tls',
      state: 'warning',
      what: 'delivery.base_url is http://: positions are sent without encryption.',
      act: 'Use https://.',
      providers,
    }
}

async function checkKeys(
  provider: Provider,
  { env }: Io,
): Promise<{ keys: SigningKeys | null; finding: DoctorFinding }> {
  const about = { name: 'credentials', providers: [provider.name] } as const
  const { source } = provider.credentials
  try {
    const keys = await findSigningKeys({ clock: systemClock, env }, provider)
    const { accessKeyId, expiresAt } = keys
    const account = accountIn(accessKeyId)
    const parts = [
      `Access key ${accessKeyId} from ${source}`,
      ...(account === null ? [] : [`of the account ${account}`]),
      ...(keys.sessionToken === null ? [] : ['with a session token']),
      ...(expiresAt === null ? [] : [`valid until ${new Date(expiresAt).toISOString()}`]),
    ]
    const what = `${parts.join(', ')}.`
    if (expiresAt === null || expiresAt > systemClock.now())
      return { keys, finding: { ...about, state: 'ok', what } }
    const act = 'Renew them at their source; check also the clock of this machine.'
    return { keys: null, finding: { ...about, state: 'failed', what, why: 'They have expired.', act } }
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    const { what, why, act } = error
    return { keys: null, finding: { ...about, state: 'failed', what, why, act } }
  }
}

async function checkOwnSignature(provider: Provider, keys: SigningKeys, io: Io): Promise<DoctorFinding> {
  const about = { name: 'signature', providers: [provider.name] } as const
  const { accessKeyId, secret, sessionToken } = keys
  const account = {
    accessKeyId,
    secret,
    ...(sessionToken === null ? {} : { sessionToken }),
    aggregator: provider.providerKey !== null,
  }
  const sandbox = createSandbox(
    { clock: systemClock, newId: newRandomId, random: Math.random },
    { accounts: [account] },
  )
  try {
    const { url } = await sandbox.listen({ host: '127.0.0.1', port: 0 })
    const local: Provider = {
      ...provider,
      baseUrl: url,
      proxy: { from: 'none' },
      ca: null,
      clientCertificate: null,
    }
    const outcome = await sendSignedRequest({ clock: systemClock, ...io }, local, keys)
    if (outcome.kind === 'refused')
      return { ...about, state: 'ok', what: 'Our own check verifies a signature of these keys.' }
    return {
      ...about,
      state: 'failed',
      what: 'Our own check does not verify a signature of these keys.',
      why: `${answerText(outcome)}.`,
      act: 'Enter the keys again: the secret or the session token contains other characters than it should.',
    }
  } finally {
    await sandbox.close()
  }
}

async function checkSignedRequest(provider: Provider, keys: SigningKeys, io: Io): Promise<DoctorFinding> {
  const outcome = await sendSignedRequest({ clock: systemClock, ...io }, provider, keys)
  return { name: 'service', providers: [provider.name], ...judged(outcome) }
}

const onlyIf =
  'This proves the signature and the account only if the service authenticates before it validates.'

type Judgement = Pick<DoctorFinding, 'state' | 'why' | 'act'>

const unlike: Judgement = {
  state: 'warning',
  why: `The specification demands 400. ${onlyIf}`,
  act: 'Check that delivery.base_url is that of the ingestion API.',
}

/** What each outcome of a batch without batchId means. */
const judgements: Record<Exclude<Outcome['kind'], 'refused'>, Judgement> = {
  unauthorized: {
    state: 'failed',
    why:
      'The signature is wrong, the account is not registered for this service, or a firewall refuses the ' +
      'request.',
    act:
      'If the check `signature` is ok, give the operator of the service the access key, its account and the ' +
      'requestId; check delivery.provider_key, the clock, and what a proxy or firewall in between changes.',
  },
  unexpected: {
    state: 'failed',
    why: `There is no ingestion API at delivery.base_url. ${onlyIf}`,
    act: 'Correct delivery.base_url: the URL without /v2/telemetry, of the service itself and not of a redirect.',
  },
  unavailable: {
    state: 'failed',
    why: `The service fails or limits requests. ${onlyIf}`,
    act: 'Try again; if it stays, give the operator of the service the requestId.',
  },
  unreachable: { state: 'failed', act: 'Check the network of this machine and delivery.base_url.' },
  aborted: { state: 'skipped' },
  answered: unlike,
  accepted_single: unlike,
  repeated: unlike,
  unreadable: unlike,
  interrupted: unlike,
  body_changed: unlike,
}

function judged(outcome: Outcome): Judgement & { what: string } {
  const what = `Answer to a signed request without effect: ${answerText(outcome)}.`
  if (outcome.kind === 'refused' && outcome.status === 400)
    return { state: 'ok', what, why: `The specification demands this 400. ${onlyIf}` }
  if (outcome.kind === 'refused') return { what, ...unlike }
  const judgement = judgements[outcome.kind]
  const own = outcome.kind === 'unreachable' && outcome.act !== undefined ? { act: outcome.act } : {}
  return { what, ...judgement, ...own }
}

function answerText(outcome: Outcome): string {
  const status = 'status' in outcome ? `${outcome.status}` : statusOf(outcome)
  const parts = [
    status,
    ...('message' in outcome && outcome.message !== '' ? [outcome.message.replace(/\.$/, '')] : []),
    ...('requestId' in outcome && outcome.requestId !== null ? [`requestId ${outcome.requestId}`] : []),
  ]
  return parts.filter((part) => part !== '').join(', ')
}

function statusOf({ kind }: Outcome): string {
  if (kind === 'answered') return '200'
  if (kind === 'accepted_single') return '202'
  if (kind === 'repeated') return '409'
  return kind === 'unreachable' ? 'none' : kind
}
