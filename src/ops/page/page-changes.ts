// page-changes.ts: what can be changed from a view. A user with the right to change gets a link to a view
// that asks first (page-views/change-page.ts). Everybody else gets the command to copy.

import { flagValues, metaOf } from '../http/http-routing/parameters.ts'
import { needsYes } from '../operations/operation.ts'
import { operationNamed } from '../operations/operations.ts'
import { html, type Html } from './html.ts'
import { link, toCopy } from './shown-values.ts'

/** Names of parameters of POST /control/ACTION, and their values. */
export type ChangeParameters = Readonly<Record<string, string | number | null>>

export type ChangeOffer = {
  /** Behind /control/, such as `dead-letters/requeue`. */
  action: string
  parameters: ChangeParameters
  /** On the button. */
  name: string
}

export type Access = { canChange: boolean }

/** Several changes of one thing. `about`: what it is, where a view offers the same for several things. */
export function changes(access: Access, offers: readonly ChangeOffer[], about: string | null = null): Html {
  if (access.canChange)
    return html`<p class="changes">
      ${offers.map(
        ({ action, parameters, name }) =>
          html`<a
            class="button"
            ${about !== null && html`aria-label="${name}…: ${about}"`}
            href="${link('/page/change', { change: action, ...parameters })}"
            >${name}…</a
          > `,
      )}
    </p>`
  return html`<div class="changes">
    ${offers.map(
      (offer) =>
        html`<details>
          <summary>${offer.name}</summary>
          <p class="quiet">The page changes nothing here. Run this command on the machine of the gateway:</p>
          ${toCopy(commandOf(offer))}
        </details>`,
    )}
  </div>`
}

/** Without `yes`, it only reports what it would do. */
export function takesYes(action: string): boolean {
  return needsYes(operationNamed(action))
}

/** The command that does the same. */
export function commandOf({ action, parameters }: Omit<ChangeOffer, 'name'>): string {
  const { shape } = operationNamed(action).parameters
  const options: string[] = []
  let argument: string | null = null
  for (const [name, value] of Object.entries(parameters)) {
    if (value === null || value === '') continue
    const { form, json } = metaOf(shape[name])
    if (form.isArgument) argument = String(value)
    else if (json['enum'] === flagValues) options.push(`--${name}`)
    else options.push(`--${name}`, quoted(String(value)))
  }
  if (takesYes(action)) options.push('--yes')
  return commandText(action.split('/'), argument, options)
}

/** `options` are words for a shell already. An argument that looks like an option stands behind `--`. */
export function commandText(
  command: readonly string[],
  argument: string | null,
  options: readonly string[],
): string {
  const words = ['telemetry-gateway', ...command]
  if (argument === null) return [...words, ...options].join(' ')
  if (argument.startsWith('-')) return [...words, ...options, '--', quoted(argument)].join(' ')
  return [...words, quoted(argument), ...options].join(' ')
}

const invisible = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu

/** As one word for bash and zsh. Characters that nobody sees are written out, so that copying keeps them. */
export function quoted(text: string): string {
  if (/^[\w./][\w.:/@%+=,-]*$/.test(text)) return text
  if (text.search(invisible) === -1) return `'${text.replaceAll("'", "'\\''")}'`
  const written = text
    .replaceAll(/[\\']/g, '\\$&')
    .replace(invisible, (one) => `\\U${(one.codePointAt(0) ?? 0).toString(16).padStart(8, '0')}`)
  return `$'${written}'`
}
