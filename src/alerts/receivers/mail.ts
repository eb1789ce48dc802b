// mail.ts: an alert as a plain-text mail. Its subject names the gateway and the headline.

import { bounded, visible } from '../../std/quote.ts'
import { textOf } from '../alert-text.ts'
import type { Alert } from '../types.ts'

const subjectLengthMax = 200

export type MailAddresses = { sender: string; recipients: readonly string[] }

/** The bytes of the mail, headers included. */
export async function mailOf(alert: Alert, { sender, recipients }: MailAddresses): Promise<Buffer> {
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
