// What can be measured of a page in a browser: whether it is cut off, how large its
// targets are, and how well its text can be told from its background.
import type { Page } from "playwright-core";

/** What was measured. */
export interface Measures {
  /** By how much the page is wider than the screen, in CSS pixels. */
  readonly overflow: number;
  /** Links, buttons and fields, with their height in CSS pixels. */
  readonly targets: readonly { readonly text: string; readonly height: number }[];
  /** Elements with text, with its contrast as WCAG 2.2 computes it: 1 to 21. */
  readonly texts: readonly { readonly text: string; readonly contrast: number }[];
}

/** Measures a page. */
export async function measure(page: Page): Promise<Measures> {
  return (await page.evaluate(`(${SCRIPT})()`)) as Measures;
}

// A text, since what a compiler makes of a function may need what the page does not have.
const SCRIPT = `() => {
  const numbers = (color) => color.match(/[\\d.]+/g).map(Number);
  const luminance = (color) => {
    const [r, g, b] = color.slice(0, 3).map((value) => value / 255)
      .map((value) => (value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const backgroundOf = (element) => {
    if (element === null) return [255, 255, 255];
    const color = numbers(getComputedStyle(element).backgroundColor);
    return color[3] === 0 ? backgroundOf(element.parentElement) : color;
  };
  const contrast = (element) => {
    const [one, other] = [luminance(numbers(getComputedStyle(element).color)), luminance(backgroundOf(element))];
    return (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
  };
  const hasText = (element) =>
    element.matches("input") || [...element.childNodes].some((node) => node.nodeType === 3 && node.nodeValue.trim() !== "");
  const visible = [...document.querySelectorAll("body *")].filter((element) => element.getClientRects().length > 0);
  const height = (element) => element.getBoundingClientRect().height;
  const text = (element) => (element.textContent || element.id).trim().slice(0, 40);
  return {
    overflow: document.documentElement.scrollWidth - window.innerWidth,
    targets: visible.filter((one) => one.matches("a, button, input, select")).map((one) => ({ text: text(one), height: height(one) })),
    texts: visible.filter(hasText).map((one) => ({ text: text(one), contrast: contrast(one) })),
  };
}`;
