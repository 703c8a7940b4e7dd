// Icons are decoration: what a control does is said by its text or label.
interface IconProps {
  readonly path: string;
}

function Icon({ path }: IconProps) {
  return (
    <svg
      width="18"
      height="18"
      viewBox="0 0 24 24"
      fill="none"
      stroke="currentColor"
      strokeWidth="2"
      aria-hidden="true"
    >
      <path d={path} strokeLinecap="round" strokeLinejoin="round" />
    </svg>
  );
}

export const FindIcon = () => <Icon path="M21 21l-5-5M17 10.5a6.5 6.5 0 1 1-13 0 6.5 6.5 0 0 1 13 0z" />;
export const ChevronIcon = () => <Icon path="M9 5l7 7-7 7" />;
export const CloseIcon = () => <Icon path="M6 6l12 12M18 6L6 18" />;
export const CopyIcon = () => <Icon path="M9 9h11v11H9zM15 9V4H4v11h5" />;
export const PersonIcon = () => <Icon path="M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM4 21c1-4 4-6 8-6s7 2 8 6" />;
export const TreeIcon = () => <Icon path="M12 4v5M5 20v-5h14v5M12 9v6M9 4h6" />;
