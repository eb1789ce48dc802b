// live-regions.ts: keeps the parts of a view with `data-region` new. Every few seconds the view is read
// again, and what differs is replaced. So only the server makes HTML, foreign names
// included.
//
// While the page is hidden, or a person works in a form of the part, nothing is replaced.

const everyMs = 5000

/** As the server made them, by id: the scripts change times and plots. */
const made = new Map(regionsOf(document).map((part) => [part.id, part.outerHTML]))

let reading = false
let readAt = Date.now()

setInterval(() => void renew(), everyMs)
document.addEventListener('visibilitychange', () => void renew())

async function renew(): Promise<void> {
  if (document.hidden || reading || Date.now() - readAt < everyMs - 500) return
  reading = true
  readAt = Date.now()
  try {
    const answer = await fetch(location.href, { headers: { accept: 'text/html' } })
    if (answer.redirected) return location.reload()
    replace(new DOMParser().parseFromString(await answer.text(), 'text/html'))
    mark(false)
  } catch {
    mark(true)
  } finally {
    reading = false
  }
}

function replace(fresh: Document): void {
  for (const part of regionsOf(document)) {
    const next = fresh.getElementById(part.id)
    const isUsed = part.matches(':focus-within') && part.querySelector('form') !== null
    if (next === null || isUsed || made.get(part.id) === next.outerHTML) continue
    made.set(part.id, next.outerHTML)
    const focused = pathTo(part, document.activeElement)
    const open = [...part.querySelectorAll('details')].map((one) => one.open)
    part.className = next.className
    part.replaceChildren(...next.childNodes)
    for (const [index, one] of part.querySelectorAll('details').entries()) one.open = open[index] ?? one.open
    if (focused !== null) at(part, focused)?.focus({ preventScroll: true })
  }
  for (const [old, next] of pairs(fresh)) old.replaceWith(next)
  document.dispatchEvent(new CustomEvent('regions-renewed'))
}

function regionsOf(root: Document): HTMLElement[] {
  return [...root.querySelectorAll<HTMLElement>('[data-region]')]
}

/** The time of the state, in the footer. */
function pairs(fresh: Document): [Element, Element][] {
  const [old, next] = [document, fresh].map((one) => one.querySelector('[data-now]'))
  return old && next ? [[old, next]] : []
}

/** The places of the focused element in its parents, so that its successor gets the focus. */
function pathTo(part: Element, element: Element | null): readonly number[] | null {
  const path: number[] = []
  for (let one = element; one !== null; one = one.parentElement) {
    if (one === part) return path
    path.unshift([...(one.parentElement?.children ?? [])].indexOf(one))
  }
  return null
}

function at(part: Element, path: readonly number[]): HTMLElement | null {
  let found: Element | undefined = part
  for (const index of path) found = found?.children[index]
  return found instanceof HTMLElement ? found : null
}

/** Says that the values are old while the gateway cannot be reached. */
function mark(isLost: boolean): void {
  const id = 'connection-lost'
  const shown = document.getElementById(id)
  if (!isLost) shown?.remove()
  if (!isLost || shown !== null) return
  const note = document.createElement('p')
  note.id = id
  note.className = 'bad'
  note.role = 'alert'
  note.textContent = 'The gateway does not answer. What you see is old.'
  document.querySelector('main')?.prepend(note)
}
