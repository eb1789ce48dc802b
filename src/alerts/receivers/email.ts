// email.ts: sends alerts as mails through an SMTP relay, by nodemailer's SMTP client on a connection of ours:
// names are resolved as everywhere else, and the end of a try ends the connection.

import { connect, isIP, type Socket } from 'node:net'
import type SMTPConnection from 'nodemailer/lib/smtp-connection'
import { addressAttempts } from '../../std/network-faults/address-attempts.ts'
import { plural } from '../../std/quantity.ts'
import type { Secret } from '../../std/secret.ts'
import type { AlertReceiver, Sent, Alert } from '../types.ts'
import { failureOf, isBroken } from './failure-text.ts'
import { createHiding } from './hidden-text.ts'
import { lookupName } from './name-lookup.ts'
import { bounded, visible } from '../../std/quote.ts'
import { textOf } from '../alert-text.ts'

export type EmailOptions = MailAddresses & {
  host: string
  port: number
  security: 'starttls' | 'tls' | 'none'
  login: { user: string; password: Secret } | null
  ca: string | null
  timeoutMs: number
}

type Hide = ReturnType<typeof createHiding>

/** A relay that says more is not one. */
const replyBytesMax = 64 * 1024

export function createEmail(options: EmailOptions): AlertReceiver {
  loadMailClient()
  const { host, port, recipients, sender, timeoutMs, login } = options
  const password = login?.password.reveal() ?? ''
  const hide = createHiding([password, `\0${login?.user ?? ''}\0${password}`])
  return {
    type: 'email',
    target: `${isIP(host) === 6 ? `[${host}]` : host}:${port} to ${recipients.join(', ')}`,
    timeoutMs,
    send: (alert, ends) =>
      withRelay(options, { hide, ends }, async (relay) => {
        const mail = await mailOf(alert, { sender, recipients })
        return resultOf(await relay.send(mail), hide)
      }),
    check: (ends) =>
      withRelay(options, { hide, ends }, async () => ({
        kind: 'sent',
        detail: `The relay accepts ${login === null ? 'connections' : 'the user'}. No mail was sent.`,
        warning: null,
      })),
  }
}

/** Now, and not for the first mail: as loadHttpClient() in http-request.ts. */
function loadMailClient(): void {
  import('nodemailer/lib/smtp-connection').catch(() => undefined)
  import('nodemailer/lib/mail-composer').catch(() => undefined)
}

type Relay = { send(mail: Buffer): Promise<SMTPConnection.SentMessageInfo> }

/** Never rejects. */
async function withRelay(
  options: EmailOptions,
  { hide, ends }: { hide: Hide; ends: AbortSignal },
  use: (relay: Relay) => Promise<Sent>,
): Promise<Sent> {
  let socket: Socket | null = null
  let relay: SMTPConnection | null = null
  const broken = Promise.withResolvers<never>()
  broken.promise.catch(() => undefined)
  const onAbort = () => {
    broken.reject(Object.assign(new Error('no answer in time'), { code: 'ETIMEDOUT' }))
    relay?.close()
    socket?.destroy()
  }
  const orBroken = <Result>(promise: Promise<Result>) => Promise.race([promise, broken.promise])
  try {
    if (ends.aborted) onAbort()
    else ends.addEventListener('abort', onAbort, { once: true })
    // Before there is a connection whose events could be missed.
    const { default: Client } = await import('nodemailer/lib/smtp-connection')
    socket = connect({
      host: options.host,
      port: options.port,
      lookup: lookupName,
      ...addressAttempts(options.timeoutMs),
    })
    socket.on('error', broken.reject)
    await orBroken(connected(socket))
    relay = new Client(connectionOptions(socket, options))
    relay.on('error', broken.reject)
    relay.on('end', () =>
      broken.reject(Object.assign(new Error('the relay closed the connection'), { code: 'ECONNRESET' })),
    )
    const open = relay
    await orBroken(called((done) => open.connect(done)))
    const { login } = options
    if (login !== null) {
      const auth = { user: login.user, pass: login.password.reveal() }
      await orBroken(called((done) => open.login(auth, done)))
    }
    const sent = await orBroken(use({ send: (mail) => orBroken(sendOver(open, options, mail)) }))
    open.quit()
    return sent
  } catch (error) {
    return failed(error, options, hide)
  } finally {
    ends.removeEventListener('abort', onAbort)
    const ending = socket
    // QUIT is written; a relay that keeps the connection open does not keep ours.
    setImmediate(() => {
      relay?.close()
      ending?.destroySoon()
      setTimeout(() => ending?.destroy(), 1000).unref()
    })
  }
}

function connected(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    socket.once('connect', resolve)
  })
}

function called(call: (done: (error?: Error | null) => void) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    call((error) => {
      if (error) reject(error)
      else resolve()
    })
  })
}

function connectionOptions(
  socket: Socket,
  { host, port, security, ca, timeoutMs }: EmailOptions,
): SMTPConnection.Options {
  return {
    connection: socket,
    host,
    port,
    secure: security === 'tls',
    requireTLS: security === 'starttls',
    ignoreTLS: security === 'none',
    greetingTimeout: timeoutMs,
    socketTimeout: timeoutMs,
    maxResponseSize: replyBytesMax,
    logger: false,
    tls: { minVersion: 'TLSv1.2', ...(isIP(host) === 0 && { servername: host }), ...(ca !== null && { ca }) },
  }
}

function sendOver(
  relay: SMTPConnection,
  { sender, recipients }: EmailOptions,
  mail: Buffer,
): Promise<SMTPConnection.SentMessageInfo> {
  return new Promise((resolve, reject) => {
    relay.send({ from: sender, to: [...recipients], size: mail.length }, mail, (error, info) => {
      if (error) reject(error)
      else resolve(info)
    })
  })
}

function resultOf({ response, rejected, rejectedErrors }: SMTPConnection.SentMessageInfo, hide: Hide): Sent {
  const detail = hide(response)
  if (rejected.length === 0) return { kind: 'sent', detail, warning: null }
  const reasons = (rejectedErrors ?? []).map((error) => error.response ?? error.message)
  const those = `${plural(rejected.length, 'recipient')} refused: ${rejected.join(', ')}`
  return { kind: 'sent', detail: `${detail}. ${those}`, warning: hide(`${those} (${reasons.join('; ')})`) }
}

function failed(error: unknown, { host, port, ca, security, login }: EmailOptions, hide: Hide): Sent {
  const {
    response,
    responseCode = 0,
    command = '',
  } = Object(error) as {
    response?: string
    responseCode?: number
    command?: string
  }
  const answer = (why: string, act: string): Sent => ({
    kind: 'failed',
    why: hide(why),
    act,
    retryAfterMs: null,
    mayHaveArrived: isBroken(error),
  })
  if (response === undefined || response === '') {
    const place = { host, address: `${host}:${port}`, hasCa: ca !== null }
    const { why, act } = failureOf(error, { ...place, options: '`host` and `port` of the receiver' })
    const isTls = /STARTTLS|TLS/i.test(why)
    return answer(
      why,
      isTls ? `Check \`security\` (now ${security}), the port and \`ca\` of the receiver.` : act,
    )
  }
  const said = `The relay answers ${command === '' ? '' : `${command.split(' ')[0]} with `}${response}`
  if (command.startsWith('STARTTLS'))
    return answer(said, `Check \`security\` (now ${security}) and the port.`)
  if (command.startsWith('AUTH')) return answer(said, 'Check user and password of the receiver.')
  if (command === 'MAIL FROM') return answer(said, 'Check `sender`: the relay must allow it.')
  if (command === 'RCPT TO')
    return answer(
      said,
      login === null ? 'Check `recipients`. The relay may need user and password.' : 'Check `recipients`.',
    )
  if (responseCode >= 400 && responseCode < 500)
    return answer(said, 'Nothing: it is tried again. If it continues, ask who runs the relay.')
  return answer(said, 'Ask who runs the relay.')
}

// An alert as a plain-text mail. Its subject names the gateway and the headline.

const subjectLengthMax = 200

type MailAddresses = { sender: string; recipients: readonly string[] }

/** The bytes of the mail, headers included. */
async function mailOf(alert: Alert, { sender, recipients }: MailAddresses): Promise<Buffer> {
  const test = alert.isTest ? 'TEST ' : ''
  const subject = visible(bounded(`[${alert.gateway}] ${test}${alert.headline}`, subjectLengthMax))
  const [, domain = 'localhost'] = sender.split('@')
  // Only a gateway that sends mails loads it (email.ts).
  const { default: MailComposer } = await import('nodemailer/lib/mail-composer')
  const composer = new MailComposer({
    from: { name: `Telemetry gateway ${visible(alert.gateway)}`, address: sender },
    to: [...recipients],
    subject,
    text: textOf(alert),
    date: new Date(alert.createdAt),
    messageId: `<${alert.id}@${domain}>`,
    // Absence notes of the recipients must not come back.
    headers: { 'Auto-Submitted': 'auto-generated', 'X-Auto-Response-Suppress': 'All' },
    disableFileAccess: true,
    disableUrlAccess: true,
  })
  return composer.compile().build()
}
