const visible = (element) => element.checkVisibility({ visibilityProperty: true, opacityProperty: true });
const drawings = () => [...document.querySelectorAll("svg.drawing")].filter(visible);
const texts = (drawing) =>
  [...drawing.querySelectorAll("text")].map((text) => [text.textContent, text.getBoundingClientRect()]);

// Figures that show nothing.
const empty = () =>
  drawings().flatMap((drawing) => {
    const box = drawing.getBoundingClientRect();
    const marks = [...drawing.querySelectorAll("path, use, line, circle, rect")].filter((mark) => {
      const size = mark.getBoundingClientRect();
      return mark.closest("defs") === null && size.width + size.height > 0;
    });
    return box.width > 100 && box.height > 50 && marks.length > 3 ? [] : ["figure: nothing drawn"];
  });

// Text in a figure that reaches beyond its edges.
const clipped = () =>
  drawings().flatMap((drawing) => {
    const box = drawing.getBoundingClientRect();
    return texts(drawing)
      .filter(([, t]) => t.left < box.left - 1 || t.right > box.right + 1 || t.top < box.top - 1 || t.bottom > box.bottom + 1)
      .map(([text]) => `clipped: ${text}`);
  });

// Texts in a figure that lie on each other; the space above and below letters does not count.
const overlapping = () =>
  drawings().flatMap((drawing) => {
    const boxes = texts(drawing).filter(([, t]) => t.width > 0);
    const found = [];
    boxes.forEach(([text, a], n) => {
      for (const [other, b] of boxes.slice(n + 1)) {
        const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
        const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        if (across > 1 && down > 0.3 * Math.min(a.height, b.height)) found.push(`overlap: ${text} / ${other}`);
      }
    });
    return found;
  });

// Text in a figure too small to read.
const tiny = () =>
  drawings().flatMap((drawing) => {
    const scale = drawing.getBoundingClientRect().width / drawing.viewBox.baseVal.width;
    return [...drawing.querySelectorAll("text")]
      .filter((text) => parseFloat(getComputedStyle(text).fontSize) * scale < 8)
      .map((text) => `tiny: ${text.textContent}`);
  });

// A page that has to be scrolled sideways, and what makes it so.
const overflow = () => {
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= width && document.body.scrollWidth <= width) return [];
  const wide = [...document.body.querySelectorAll("*")].filter(
    (element) => element.getBoundingClientRect().right > width + 1 && !element.closest(".scroll > *, .canvas > *"),
  );
  return [`overflow: ${wide.map((element) => element.tagName + "." + element.className).slice(0, 5)}`];
};

const pixel = (() => {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 1;
  const context = canvas.getContext("2d", { willReadFrequently: true });
  const known = new Map();
  return (colour) => {
    if (!known.has(colour)) {
      context.clearRect(0, 0, 1, 1);
      context.fillStyle = colour;
      context.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = context.getImageData(0, 0, 1, 1).data;
      known.set(colour, [r, g, b, a / 255]);
    }
    return known.get(colour);
  };
})();
const over = (top, below) => top.slice(0, 3).map((part, n) => part * top[3] + below[n] * (1 - top[3]));
const behind = (element) => {
  if (!element) return [255, 255, 255];
  const own = pixel(getComputedStyle(element).backgroundColor);
  return own[3] === 1 ? own.slice(0, 3) : over(own, behind(element.parentElement));
};
const luminance = (rgb) => {
  const [r, g, b] = rgb.map((part) => (part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const ratio = (a, b) => {
  const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (high + 0.05) / (low + 0.05);
};

// Text that does not stand out from what is behind it. Text in a figure is held against the page.
const faint = (least = 4.5) => {
  const found = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !visible(element) || element.closest("title, desc")) continue;
    if (getComputedStyle(element).clipPath !== "none") continue;
    const look = getComputedStyle(element);
    const drawn = element.closest("svg") !== null;
    const ground = behind(element);
    const colour = over(pixel(drawn ? look.fill : look.color), ground);
    const found_ratio = ratio(colour, ground);
    if (found_ratio < least) found.add(`faint: ${found_ratio.toFixed(2)} ${element.textContent.slice(0, 40)}`);
  }
  return [...found];
};

// What only somebody who means harm, or a fault in escaping, puts on a page.
const foreign = () => {
  const found = [];
  if (document.scripts.length !== 1) found.push(`foreign: ${document.scripts.length} scripts`);
  if (document.querySelectorAll("style").length !== 1) found.push("foreign: styles");
  for (const element of document.querySelectorAll("*")) {
    if (/^(img|iframe|object|embed|form|base|foreignobject)$/i.test(element.tagName)) found.push(`foreign: ${element.tagName}`);
    for (const { name } of element.attributes) {
      if (/^on|^style$/i.test(name)) found.push(`foreign: ${element.tagName} with ${name}`);
    }
  }
  return found;
};

// Names used twice, and references to names that are not there.
const names = () => {
  const ids = [...document.querySelectorAll("[id]")].map((element) => element.id);
  const found = ids.filter((id, n) => ids.indexOf(id) !== n).map((id) => `twice: ${id}`);
  const known = new Set(ids);
  for (const element of document.querySelectorAll("*")) {
    for (const { name, value } of element.attributes) {
      const wanted = [];
      if (/^aria-(labelledby|describedby)$|^for$/.test(name)) wanted.push(...value.split(" "));
      if (name === "href" && value.startsWith("#")) wanted.push(value.slice(1));
      wanted.push(...[...value.matchAll(/url\(#([^)]+)\)/g)].map((match) => match[1]));
      found.push(...wanted.filter((id) => !known.has(id)).map((id) => `nowhere: ${id}`));
    }
  }
  return found;
};

// Headings that leave out a level.
const headings = () => {
  const levels = [...document.querySelectorAll("h1,h2,h3,h4,h5,h6")].map((head) => Number(head.tagName[1]));
  const found = levels.filter((level, n) => (n === 0 ? level !== 1 : level > levels[n - 1] + 1));
  return found.map((level) => `heading: h${level} out of order`);
};

const everything = () => [
  ...empty(), ...clipped(), ...overlapping(), ...tiny(), ...overflow(), ...faint(), ...foreign(), ...names(), ...headings(),
];
