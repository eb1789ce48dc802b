// live-regions.ts: keeps the parts of a view with `data-region` new. Every few seconds the view is read
// again, and what differs is changed in place. So only the server makes HTML, foreign names included.
//
// An element is kept when the new view has one with the same key (`keyOf`), also at another place: it keeps
// its focus, its selection and its open state. When the focused element is removed, its region gets the
// focus; otherwise a person with a keyboard would have to start again at the top of the page.
//
// While the page is hidden, or a finger or a button of the mouse is down, nothing changes. What has just
// moved takes no click for a moment: it was meant for what was there before.

const everyMs = 5000
/** From the decision of a person to his tap. */
const movedMs = 500
/** Longer is no tap. The end of a press is not always seen: a menu may take it. */
const pressedMs = 1000

let reading = false
let readAt = Date.now()
/** Since when a finger or a button is down; 0: none is. */
let pressedAt = 0
let moved: ReadonlySet<Element> = new Set()

for (const type of ['pointerdown', 'pointerup', 'pointercancel'])
  document.addEventListener(type, () => (pressedAt = type === 'pointerdown' ? Date.now() : 0), true)
document.addEventListener('click', refuseIfMoved, true)
setInterval(() => void renew(), everyMs)
document.addEventListener('visibilitychange', () => void renew())

async function renew(): Promise<void> {
  if (document.hidden || reading || Date.now() - readAt < everyMs - 500) return
  reading = true
  readAt = Date.now()
  try {
    const answer = await fetch(location.href, { headers: { accept: 'text/html' } })
    if (answer.redirected) return location.reload()
    const fresh = new DOMParser().parseFromString(await answer.text(), 'text/html')
    if (Date.now() - pressedAt > pressedMs) replace(fresh)
    mark(false)
  } catch {
    mark(true)
  } finally {
    reading = false
  }
}

function replace(fresh: Document): void {
  const places = placesOfControls()
  for (const part of document.querySelectorAll<HTMLElement>('[data-region]')) {
    const next = fresh.getElementById(part.id)
    if (next === null) continue
    const focused = part.contains(document.activeElement) ? document.activeElement : null
    update(part, next)
    if (focused instanceof HTMLElement || focused instanceof SVGElement) keepFocus(focused, part)
  }
  document.dispatchEvent(new CustomEvent('regions-renewed'))
  const now = placesOfControls()
  moved = new Set([...now.keys()].filter((one) => places.get(one) !== now.get(one)))
  if (moved.size > 0) setTimeout(() => (moved = new Set()), movedMs)
}

/** Makes `old` as `fresh` is. */
function update(old: Element, fresh: Element): void {
  if (old.isEqualNode(fresh)) return
  for (const name of fresh.getAttributeNames()) {
    const value = fresh.getAttribute(name) ?? ''
    if (name !== 'open' && old.getAttribute(name) !== value) old.setAttribute(name, value)
  }
  for (const name of old.getAttributeNames())
    if (name !== 'open' && name !== 'tabindex' && !fresh.hasAttribute(name)) old.removeAttribute(name)

  const [wanted, known] = [nodesByKey(fresh), nodesByKey(old)]
  for (const [key, nodes] of known)
    for (const gone of nodes.splice(wanted.get(key)?.length ?? 0))
      if (!(gone instanceof HTMLElement && 'added' in gone.dataset)) gone.remove()
  let place = old.firstChild
  for (const next of Array.from(fresh.childNodes)) {
    const same = known.get(keyOf(next))?.shift()
    if (same === place && same !== undefined) place = same.nextSibling
    else old.insertBefore(same ?? next, place)
    if (same instanceof Element && next instanceof Element) update(same, next)
    else if (same !== undefined && same.nodeValue !== next.nodeValue) same.nodeValue = next.nodeValue
  }
}

function nodesByKey(parent: Element): ReadonlyMap<string, ChildNode[]> {
  const nodes = new Map<string, ChildNode[]>()
  for (const one of parent.childNodes) nodes.set(keyOf(one), [...(nodes.get(keyOf(one)) ?? []), one])
  return nodes
}

/** What a node is among its siblings: a link by its target, a row by its first link; others by place. */
function keyOf(node: Node): string {
  if (!(node instanceof Element)) return node.nodeName
  const link = ['TR', 'LI'].includes(node.tagName) ? node.querySelector('a') : node
  return `${node.tagName} ${node.id || (node.getAttribute('data-key') ?? link?.getAttribute('href') ?? '')}`
}

function keepFocus(focused: HTMLElement | SVGElement, part: HTMLElement): void {
  if (document.activeElement === focused) return
  if (!focused.isConnected) part.tabIndex = -1
  const next = focused.isConnected ? focused : part
  next.focus({ preventScroll: true })
}

/** Where on the screen what can be clicked begins. */
function placesOfControls(): Map<Element, string> {
  const controls = [...document.querySelectorAll('a, button, summary')]
  return new Map(
    controls.map((one) => {
      const { left, top } = one.getBoundingClientRect()
      return [one, `${Math.round(left)} ${Math.round(top)}`]
    }),
  )
}

/** A click of the keyboard has no detail. It is meant for what has the focus, wherever that is. */
function refuseIfMoved(event: MouseEvent): void {
  const control = event.target instanceof Element ? event.target.closest('a, button, summary') : null
  if (event.detail === 0 || control === null || !moved.has(control)) return
  event.preventDefault()
  event.stopPropagation()
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
